import type { ChainAccount } from './chain-account.ts'
import type { Currency } from './chains.ts'
import type { Store } from './store.ts'

/** What the solver can pay: its balance without what it has promised, and at most a limit that a test sets. */
export type Inventory = {
  available: (currency: Currency) => Promise<bigint>
  limit: (currency: Currency, units: bigint | undefined) => void
}

type InventoryDeps = { store: Store; accountOf: (chainId: number) => ChainAccount }

export const createInventory = ({ store, accountOf }: InventoryDeps): Inventory => {
  const nameOf = ({ chainId, address }: Currency) => `limit:${chainId}:${address}`
  const unpaidUnits = ({ chainId, address }: Currency): bigint =>
    store
      .active()
      .flatMap(({ payout }) => payout ?? [])
      .filter((each) => each.source === 'wallet' && each.chainId === chainId && each.currency === address)
      .reduce((sum, { units }) => sum + BigInt(units), 0n)
  return {
    available: async (currency) => {
      const left = (await accountOf(currency.chainId).balance(currency)) - unpaidUnits(currency)
      const limit = store.setting(nameOf(currency))
      return limit === undefined || limit === '' || left < BigInt(limit) ? left : BigInt(limit)
    },
    limit: (currency, units) => store.saveSetting(nameOf(currency), units === undefined ? '' : String(units)),
  }
}
