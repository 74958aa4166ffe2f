import { contracts } from './chain/addresses.ts'
import type { Address } from './chain/chain-terms.ts'
import { exchangeOf } from './chain/orders.ts'
import { type AssetType, assetOf, type ChainPort, type FundsRead } from './chain-port.ts'
import type { Funds, OrderInput } from './place-order.ts'
import type { RealismControl } from './realism.ts'
import { marketOf } from './venue.ts'

/** Balances and allowances as the venue knows them, which is late when the dial says so. */
export type FundsBook = {
  read: (wallet: Address, asset: AssetType, token: string) => Promise<FundsRead>
  /** Reads the chain now. */
  update: (wallet: Address, asset: AssetType, token: string) => Promise<FundsRead>
  ofOrder: (order: OrderInput) => Promise<Funds>
}

const entriesMax = 20_000

export const createFundsBook = (chain: ChainPort, realism: RealismControl): FundsBook => {
  const known = new Map<string, { value: FundsRead; atMs: number }>()
  const keyOf = (wallet: Address, asset: AssetType, token: string) =>
    `${wallet.toLowerCase()} ${asset === 'COLLATERAL' ? asset : token}`

  const load = async (wallet: Address, asset: AssetType, token: string, how: 'read' | 'update') => {
    const value = await chain.funds(wallet, asset, token, how)
    if (known.size > entriesMax) known.clear()
    known.set(keyOf(wallet, asset, token), { value, atMs: performance.now() })
    return value
  }
  const read: FundsBook['read'] = async (wallet, asset, token) => {
    const entry = known.get(keyOf(wallet, asset, token))
    const { balanceReads } = realism.current()
    const lagMs = balanceReads === 'untilUpdate' ? Number.POSITIVE_INFINITY : realism.lagMs('balanceLag')
    return entry && performance.now() - entry.atMs < lagMs ? entry.value : load(wallet, asset, token, 'read')
  }
  return {
    read,
    update: (wallet, asset, token) => load(wallet, asset, token, 'update'),
    ofOrder: async ({ side, signed, conditionId }) => {
      const asset = side === 'BUY' ? 'COLLATERAL' : assetOf(signed.tokenId)
      const { balance, allowances } = await read(signed.maker, asset, signed.tokenId)
      const spender = contracts[exchangeOf(marketOf(conditionId).chain)]
      return { balance: String(balance), allowance: String(allowances[spender] ?? 0n), spender }
    },
  }
}
