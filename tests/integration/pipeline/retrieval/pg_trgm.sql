-- What pg_trgm has, in SQL, for servers that lack the extension. Written after its documentation:
-- a string's trigrams are those of its words, each with two blanks before and one behind; the
-- similarity of two sets is what they share of what they have together. word_similarity is that of
-- whole words here, as strict_word_similarity is: how far in a part may begin or end does not
-- matter to who calls them.
CREATE FUNCTION trigrams(text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(DISTINCT substr(padded, n, 3)), '{}')
    FROM regexp_split_to_table(lower($1), '[^[:alnum:]]+') AS word,
        concat('  ', word, ' ') AS padded, generate_series(1, length(padded) - 2) AS n
    WHERE word <> ''
$$;

CREATE FUNCTION similarity(text, text) RETURNS real LANGUAGE sql IMMUTABLE AS $$
    SELECT (CASE WHEN count(*) = 0 THEN 0
        ELSE count(*) FILTER (WHERE a AND b) / count(*)::real END)::real
    FROM (SELECT t, t = ANY(trigrams($1)) AS a, t = ANY(trigrams($2)) AS b
          FROM unnest(trigrams($1 || ' ' || $2)) AS t) AS each
$$;

CREATE FUNCTION strict_word_similarity(text, text) RETURNS real LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(max(similarity($1, array_to_string(words[m:n], ' '))), 0)
    FROM regexp_split_to_array($2, '[^[:alnum:]]+') AS words,
        generate_series(1, cardinality(words)) AS m, generate_series(m, cardinality(words)) AS n
$$;

CREATE FUNCTION word_similarity(text, text) RETURNS real LANGUAGE sql IMMUTABLE AS $$
    SELECT strict_word_similarity($1, $2)
$$;

CREATE FUNCTION similarity_op(text, text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT similarity($1, $2) >= coalesce(
        nullif(current_setting('pg_trgm.similarity_threshold', true), ''), '0.3')::real
$$;

CREATE FUNCTION word_similarity_op(text, text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT word_similarity($1, $2) >= coalesce(
        nullif(current_setting('pg_trgm.word_similarity_threshold', true), ''), '0.6')::real
$$;

CREATE FUNCTION strict_word_similarity_op(text, text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT strict_word_similarity($1, $2) >= coalesce(
        nullif(current_setting('pg_trgm.strict_word_similarity_threshold', true), ''), '0.5')::real
$$;

CREATE OPERATOR % (LEFTARG = text, RIGHTARG = text, FUNCTION = similarity_op);
CREATE OPERATOR <% (LEFTARG = text, RIGHTARG = text, FUNCTION = word_similarity_op);
CREATE OPERATOR <<% (LEFTARG = text, RIGHTARG = text, FUNCTION = strict_word_similarity_op);
