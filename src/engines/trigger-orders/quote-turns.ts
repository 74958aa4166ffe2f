import { createLru } from '#kernel/async/create-lru.ts'
import type { NearQuote } from './store.ts'

/**
 * Decides which quotes come first if the budget does not cover all: users take turns, and each user's turn goes
 * to the quote that was asked for longest ago. One user's orders, however many, delay another's by one turn.
 */

export type TurnQuote = Pick<NearQuote, 'market' | 'quote_key'> & { user_id: string }
export type QuoteTurns = {
  /** Orders quotes by the turns of their users; quotes for which `isFirst` is true come before all turns. */
  inTurns<Q extends TurnQuote>(quotes: readonly Q[], isFirst: (quote: Q) => boolean): Q[]
  asked(quote: TurnQuote): void
}

const rememberedMax = 20_000

export const keyOf = ({ market, quote_key: quoteKey }: Pick<TurnQuote, 'market' | 'quote_key'>): string =>
  `${market} ${quoteKey}`

export function createQuoteTurns(): QuoteTurns {
  let turn = 0
  /** The turn in which each quote and each user was asked last. */
  const lastTurns = createLru<string, number>(rememberedMax)
  const lastTurnOf = (name: string): number => lastTurns.peek(name) ?? 0
  return {
    inTurns(quotes, isFirst) {
      const byAge = [...quotes].sort((one, other) => lastTurnOf(keyOf(one)) - lastTurnOf(keyOf(other)))
      const counts = new Map<string, number>()
      const placed = byAge.map((quote) => {
        const before = counts.get(quote.user_id) ?? 0
        counts.set(quote.user_id, before + 1)
        return { quote, place: isFirst(quote) ? -1 : before, turn: lastTurnOf(quote.user_id) }
      })
      return placed
        .sort((one, other) => one.place - other.place || one.turn - other.turn)
        .map(({ quote }) => quote)
    },
    asked(quote) {
      turn += 1
      lastTurns.set(keyOf(quote), turn)
      lastTurns.set(quote.user_id, turn)
    },
  }
}
