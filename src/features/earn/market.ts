import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { fromUnits, toUnits } from '#kernel/money.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault, VaultState } from '#upstreams/vault/vault.ts'
import { addSharePrice, sharePricesSince } from './store.ts'
import { apyOf, dayMs } from './yield.ts'

/** What the vault is worth and earns, for everybody alike. */

export type Yield = { apy: number | null; apy7d: number | null; apy30d: number | null }
export type Seen = { state: VaultState; at: Date }

export type Market = {
  /** As of the last seconds; the last known where the chain is silent. */
  state(): Promise<Seen>
  yield(): Promise<Yield>
  /** Stores the share price of now; the app asks for it every hour and at start. */
  snapshot(): Promise<void>
}

type Needs = { on: Queryable; vault: Vault; clock: Clock }

const stateFreshMs = 2_000
const yieldFreshMs = 30_000
/** Asset decimals of USDC and the extra digits of the price make up a whole share's price. */
const usdcDecimals = 6

export const priceText = (vault: Pick<Vault, 'priceDigits'>, price: bigint): string =>
  fromUnits(price, usdcDecimals + vault.priceDigits)

export function market({ on, vault, clock }: Needs): Market {
  const place = { chainId: vault.chainId, vault: vault.address.toLowerCase() }
  const priceDecimals = usdcDecimals + vault.priceDigits
  let last: Seen | undefined
  let asked: { atMs: number; seen: Promise<Seen> } | undefined
  let earned: { atMs: number; of: Promise<Yield> } | undefined

  const ask = async (): Promise<Seen> => {
    last = { state: await vault.state(), at: clock.now() }
    return last
  }

  const fresh = (): Promise<Seen> => {
    const atMs = performance.now()
    if (!asked || atMs - asked.atMs > stateFreshMs) {
      const mine = { atMs, seen: ask() }
      asked = mine
      mine.seen.catch(() => {
        if (asked === mine) asked = undefined
      })
    }
    return asked.seen
  }

  const measure = async (): Promise<Yield> => {
    const since = new Date(clock.now().getTime() - 31 * dayMs)
    const rows = await sharePricesSince(on, place, since)
    const prices = rows.map(({ at, price }) => ({ at, price: toUnits(price, priceDecimals) }))
    return { apy: apyOf(prices, dayMs), apy7d: apyOf(prices, 7 * dayMs), apy30d: apyOf(prices, 30 * dayMs) }
  }

  return {
    state: () =>
      fresh().catch((cause: unknown) => {
        if (!(cause instanceof Fault)) throw cause
        if (last) return last
        throw new Fault('unavailable', cause.message, { cause })
      }),
    yield() {
      const atMs = performance.now()
      if (!earned || atMs - earned.atMs > yieldFreshMs) {
        const mine = { atMs, of: measure() }
        earned = mine
        mine.of.catch(() => {
          if (earned === mine) earned = undefined
        })
      }
      return earned.of
    },
    async snapshot() {
      const { state } = await ask()
      const at = new Date(state.blockTimeSeconds * 1_000)
      await addSharePrice(on, place, { at, block: state.block, price: fromUnits(state.price, priceDecimals) })
      earned = undefined
    },
  }
}
