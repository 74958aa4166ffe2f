/** Maps each word to the entry that lists it: `{ m: 'minute|min' }` maps minute and min to m. */
export const byWord = <Meaning extends string>(
  phrases: Readonly<Record<Meaning, string>>,
): ReadonlyMap<string, Meaning> =>
  new Map(
    (Object.keys(phrases) as Meaning[]).flatMap((meaning) =>
      phrases[meaning].split('|').map((word) => [word, meaning] as const),
    ),
  )

export const wordSet = (words: string): ReadonlySet<string> => new Set(words.split(' '))
