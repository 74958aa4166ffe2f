import { normalise } from './lex.ts'

/** Reads what should stop a strategy, or bound it, out of a sentence. */

export type WordGuards = {
  max_drawdown_pct?: string
  max_loss_usd?: string
  daily_loss_usd?: string
  max_consecutive_losses?: number
  max_trades_per_day?: number
  on_trip?: 'stop_entries' | 'flatten'
}
/** The sentence without these parts, and what they say. */
export type GuardedSentence = { rest: string; guards: WordGuards; budgetUsd?: string }

const number = String.raw`(\d{1,9}(?:,\d{3}){0,2}(?:\.\d{1,6})?)`
const dollars = String.raw`(?:\$ ?${number}|${number} ?(?:dollars?|usdc?|bucks|\$))`
const percent = String.raw`${number} ?(?:percent|per cent|pct|%)`
const lead = String.raw`(?:[,;.]? ?\b(?:and|but|then|or)\b)?[,;]? ?`
const stop = String.raw`\b(?:stop|quit|halt|get out|close everything|close it all)\b( buying| trading| entering)?`
const when = String.raw`(?:when|if|once|as soon as|after|at)`
const who = String.raw`(?:(?:i|it|we)(?:'m|'s|'re|'ve| am| is| are| has| have)? |losing |a loss of )?`
const down = String.raw`(?:(?:down|lost|lose|loses|losing)(?: by| more than| over)? )?`
const daily = String.raw`( (?:a|per|each|in a|in one|within a) day\b| today\b)?`

type Found = RegExpExecArray
type Rule = { pattern: RegExp; read: (found: Found) => Omit<GuardedSentence, 'rest'> }

const plain = (...texts: readonly (string | undefined)[]): string =>
  (texts.find((text) => text !== undefined) ?? '').replaceAll(',', '')
const onTrip = (verb: string | undefined) => (verb === undefined ? {} : { on_trip: 'stop_entries' as const })

const rules: readonly Rule[] = [
  {
    pattern: new RegExp(`${lead}${stop} ${when} ${who}${down}${percent}`, 'i'),
    read: ([, verb, value]) => ({ guards: { max_drawdown_pct: plain(value), ...onTrip(verb) } }),
  },
  {
    pattern: new RegExp(`${lead}${stop} ${when} ${who}${down}${dollars}${daily}`, 'i'),
    read: ([, verb, signed, worded, day]) => ({
      guards: {
        [day === undefined ? 'max_loss_usd' : 'daily_loss_usd']: plain(signed, worded),
        ...onTrip(verb),
      },
    }),
  },
  {
    pattern: new RegExp(
      String.raw`${lead}${stop} after (\d{1,4}) (?:losses|losing trades|lost trades)(?: in a row)?\b`,
      'i',
    ),
    read: ([, verb, count]) => ({ guards: { max_consecutive_losses: Number(count), ...onTrip(verb) } }),
  },
  {
    pattern: new RegExp(
      String.raw`${lead}\b(?:at most|no more than|max|maximum) (\d{1,4}) (?:trades?|buys?|entries|entry|orders?|times?) (?:a|per|each) day\b`,
      'i',
    ),
    read: ([, count]) => ({ guards: { max_trades_per_day: Number(count) } }),
  },
  {
    pattern: new RegExp(
      String.raw`${lead}\b(?:with a (?:total )?budget of|on a budget of|spend(?:ing)? (?:at most|no more than|up to)) ${dollars}(?: in (?:all|total)| altogether)?\b`,
      'i',
    ),
    read: ([, signed, worded]) => ({ guards: {}, budgetUsd: plain(signed, worded) }),
  },
]

/** Returns the sentence without its guards and its budget; each of them may be said once. */
export function splitGuards(text: string): GuardedSentence {
  let rest = normalise(text).replace(/\s+/g, ' ').trim()
  let guards: WordGuards = {}
  let budget: Pick<GuardedSentence, 'budgetUsd'> = {}
  for (const { pattern, read } of rules) {
    const found = pattern.exec(rest)
    if (!found) continue
    const { guards: own, budgetUsd } = read(found)
    guards = { ...guards, ...own }
    if (budgetUsd !== undefined) budget = { budgetUsd }
    const after = rest.slice(found.index + found[0].length)
    const joint = /^[\p{L}\p{N}$]/u.test(after) ? ' ' : ''
    rest = `${rest.slice(0, found.index)}${joint}${after}`.trim()
  }
  return { rest, guards, ...budget }
}
