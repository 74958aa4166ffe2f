/** Tasks that ended within the read lag were created at most this long ago, so that their ids bound a search. */
export const taskAgeMaxMs = 10 * 60_000
