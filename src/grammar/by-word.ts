/** The words of each entry, by word: `{ m: 'minute|min' }` becomes minute and min, each with m. */
export const byWord = <Meaning extends string>(
  phrases: Readonly<Record<Meaning, string>>,
): ReadonlyMap<string, Meaning> =>
  new Map(
    (Object.keys(phrases) as Meaning[]).flatMap((meaning) =>
      phrases[meaning].split('|').map((word) => [word, meaning] as const),
    ),
  )

export const wordSet = (words: string): ReadonlySet<string> => new Set(words.split(' '))
