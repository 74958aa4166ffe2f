/**
 * Ranks texts by the words of a query with BM25. It knows no meanings: it is a lower bound for how well a reader of the
 * same texts finds the right one.
 */

export type TextIndex = {
  /** Returns the names of the texts that share a word with the query, the best first. */
  rank(query: string): string[]
}

const saturation = 1.2
const lengthWeight = 0.75
const wordsMax = 64

/** Words that say nothing about what is wanted. */
const emptyWords = new Set(
  'a about all an and any are as at be before by can could did do does for from get give go have how i in into is it its let me more much my not now of off on or our out put say see show so some than that the their them there these they this those to up us want was we were what when where which who will with would you your'.split(
    ' ',
  ),
)

/** Without the commonest endings, so that `orders` finds `order` and `selling` finds `sell`. */
const stemOf = (word: string): string => {
  const singular = word.length > 3 ? word.replace(/ies$/, 'y').replace(/([^s])s$/, '$1') : word
  const bare = singular.length > 5 ? singular.replace(/(?:ing|ed)$/, '') : singular
  return bare.length > 3 ? bare.replace(/e$/, '').replace(/([^l])\1$/, '$1') : bare
}

/** A name such as `perp_open` is one word, so that a text that names its neighbours is not found in their place. */
export const wordsOf = (text: string): string[] =>
  (text.toLowerCase().match(/[a-z0-9_]+/g) ?? []).filter((word) => !emptyWords.has(word)).map(stemOf)

export function createTextIndex(texts: Iterable<readonly [name: string, text: string]>): TextIndex {
  const documents = [...texts].map(([name, text]) => {
    const counts = new Map<string, number>()
    const words = wordsOf(text)
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
    return { name, counts, length: words.length }
  })
  const meanLength = documents.reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.length)
  const rarity = (word: string): number => {
    const having = documents.filter(({ counts }) => counts.has(word)).length
    return Math.log(1 + (documents.length - having + 0.5) / (having + 0.5))
  }
  return {
    rank(query) {
      const wanted = [...new Set(wordsOf(query))]
        .slice(0, wordsMax)
        .map((word) => ({ word, weight: rarity(word) }))
      const scored = documents.map(({ name, counts, length }) => {
        const norm = saturation * (1 - lengthWeight + (lengthWeight * length) / meanLength)
        const score = wanted.reduce((sum, { word, weight }) => {
          const count = counts.get(word) ?? 0
          return sum + (weight * count * (saturation + 1)) / (count + norm)
        }, 0)
        return { name, score }
      })
      return scored
        .filter(({ score }) => score > 0)
        .sort((one, other) => other.score - one.score)
        .map(({ name }) => name)
    },
  }
}
