/** The limits bound every loop, so that hostile names cost little to compare. */
const nameLengthMax = 48
const suggestionsMax = 3

/** Counts the insertions, deletions, substitutions and transpositions between two texts; undefined beyond `max`. */
export function editDistance(a: string, b: string, max: number): number | undefined {
  if (Math.abs(a.length - b.length) > max) return undefined
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let cost = Math.min(row[j - 1]! + 1, last[j]! + 1, last[j - 1]! + (isSame ? 0 : 1))
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwapped) cost = Math.min(cost, before[j - 2]! + 1)
      row.push(cost)
    }
    if (Math.min(...row) > max) return undefined
    before = last
    last = row
  }
  const distance = last[b.length]!
  return distance > max ? undefined : distance
}

/**
 * Returns how many edits may separate a misspelt name from a known one: none for short words, which are often
 * similar.
 */
const editsMax = ({ length }: string): number => (length <= 4 ? 0 : length <= 6 ? 1 : length <= 9 ? 2 : 3)
const folded = (name: string): string => name.replace(/[^A-Za-z0-9]/g, '').toLowerCase()
const wordsOf = (name: string): string[] => name.toLowerCase().split(/[^a-z0-9]+/)
const holdsWords = (name: string, words: readonly string[]): boolean => {
  const own = new Set(wordsOf(name))
  return words.every((word) => own.has(word))
}

/**
 * Returns the known names that a misspelt name may mean, best first: the same letters in another case, a few
 * edits away, or with more or fewer words (`amount` for `amount_usdc`). Returns none if too many are near.
 */
export function nearest(given: string, known: Iterable<string>): string[] {
  if (given.length === 0 || given.length > nameLengthMax) return []
  const names = [...known].filter((name) => name.length <= nameLengthMax)
  const letters = folded(given)
  const max = editsMax(letters)
  let best: string[] = []
  let bestDistance = max
  for (const name of names) {
    const distance = editDistance(letters, folded(name), bestDistance)
    if (distance === undefined) continue
    best = distance < bestDistance ? [name] : [...best, name]
    bestDistance = distance
  }
  const words = wordsOf(given)
  const found =
    best.length > 0
      ? best
      : names.filter((name) => holdsWords(name, words) || holdsWords(given, wordsOf(name)))
  return found.length > suggestionsMax ? [] : found
}

export function alternatives(shown: readonly string[]): string {
  const last = shown.at(-1) ?? 'nothing'
  return shown.length < 2 ? last : `${shown.slice(0, -1).join(', ')} or ${last}`
}
