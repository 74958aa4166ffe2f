import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits, toUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault, VaultState } from '#upstreams/vault/vault.ts'
import { vaultRefOf } from './earn-account-store.ts'
import { addSharePrice, sharePricesSince } from './store.ts'
import { apyOf, dayMs } from './yield.ts'

export type Yield = { apy: number | null; apy7d: number | null; apy30d: number | null }
export type VaultReading = { state: VaultState; at: Date }

export type VaultRates = {
  /** Returns the state from the last two seconds or, if the chain does not answer, the last known one. */
  state(): Promise<VaultReading>
  yield(): Promise<Yield>
  /** Stores the current share price; the hourly schedule calls it. */
  snapshot(): Promise<void>
}

type VaultRatesDeps = { db: Queryable; vault: Vault; clock: Clock }

const stateFreshMs = 2_000
const yieldFreshMs = 30_000

export const priceText = (vault: Pick<Vault, 'priceDigits'>, price: bigint): string =>
  fromUnits(price, usdcDecimals + vault.priceDigits)

export function createVaultRates({ db, vault, clock }: VaultRatesDeps): VaultRates {
  const vaultRef = vaultRefOf(vault)
  const priceDecimals = usdcDecimals + vault.priceDigits

  const cachedState = createCachedValue(
    async (): Promise<VaultReading> => ({ state: await vault.state(), at: clock.now() }),
    { ttlMs: stateFreshMs, nowMs: monotonicMs },
  )

  const computeYield = async (): Promise<Yield> => {
    const since = new Date(clock.now().getTime() - 31 * dayMs)
    const rows = await sharePricesSince(db, vaultRef, since)
    const prices = rows.map(({ at, price }) => ({ at, price: toUnits(price, priceDecimals) }))
    return { apy: apyOf(prices, dayMs), apy7d: apyOf(prices, 7 * dayMs), apy30d: apyOf(prices, 30 * dayMs) }
  }
  const cachedYield = createCachedValue(computeYield, { ttlMs: yieldFreshMs, nowMs: monotonicMs })

  return {
    state: () =>
      cachedState.get().catch((cause: unknown) => {
        if (!(cause instanceof Fault)) throw cause
        const last = cachedState.last()
        if (last) return last
        throw new Fault('unavailable', cause.message, { cause })
      }),
    yield: () => cachedYield.get(),
    async snapshot() {
      const { state } = await cachedState.get({ force: true })
      const at = new Date(state.blockTimeSeconds * 1_000)
      await addSharePrice(db, vaultRef, {
        at,
        block: state.block,
        price: fromUnits(state.price, priceDecimals),
      })
      cachedYield.invalidate()
    },
  }
}
