import { byWord } from '#grammar/word-maps.ts'

/** This module has the numbers in words and the units behind a number. */

const ones =
  'one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen'
const tens = 'twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety'
export const numerals: ReadonlyMap<string, number> = new Map([
  ...ones.split('|').map((word, at) => [word, at + 1] as const),
  ...tens.split('|').map((word, at) => [word, 10 * (at + 2)] as const),
])
/** Words that scale a number, by the number of zeros that they add. */
export const scales = byWord({ 2: 'hundred', 3: 'thousand|grand', 6: 'million' })
export const shortScales = byWord({ 3: 'k', 6: 'mil' })
/** The word `grand` scales a number by a thousand, and means dollars. */
export const dollarScale = 'grand'
/** Words for fractions, by the number that divides the whole. */
export const fractions = byWord({
  2: 'half',
  3: 'third|thirds',
  4: 'quarter|quarters',
  5: 'fifth|fifths',
  10: 'tenth',
})
export const articles: ReadonlySet<string> = new Set(['a', 'an'])
/** The word that joins the parts of a number such as `a hundred and fifty`. */
export const numberJoint = 'and'

/** Units in words, which stand behind a number and have at most two words. */
export const unitWords = byWord({
  usd: 'dollar|dollars|buck|bucks|usd|grand',
  percent: 'percent|pct|percentage|per cent',
  bps: 'bps|bp|basis points',
  times: 'x|times|times leverage',
})
export const spanWords = byWord({
  m: 'minute|minutes|min|mins',
  h: 'hour|hours|hr|hrs|hourly',
  d: 'day|days',
  w: 'week|weeks',
  mo: 'month|months',
  y: 'year|years',
})

/** Units in letters, which stand right behind a number without a space. */
export const unitSuffixes = byWord({ usd: 'usd|bucks', percent: 'pct', bps: 'bps|bp', times: 'x' })
export const spanSuffixes = byWord({ m: 'm|min|mins', h: 'h|hr|hrs', d: 'd', w: 'w|wk', mo: 'mo', y: 'y|yr' })
export const scaleSuffixes = byWord({ 3: 'k', 6: 'm|mm|mil', 9: 'b|bn' })
/** The letter behind a number that means either a million or minutes. */
export const unclearSuffix = 'm'

export const clockTime = /^(\d{1,2})(?::(\d{2}))?\s?(am|pm)(?![a-z])|^([01]?\d|2[0-3]):([0-5]\d)(?![\d:])/i
export const isAfternoon = (half: string | undefined): boolean => half?.toLowerCase() === 'pm'
