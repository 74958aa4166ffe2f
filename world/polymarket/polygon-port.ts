import { contracts } from './chain/addresses.ts'
import type { Address, Reads } from './chain/chain-terms.ts'
import { type AssetType, type ChainPort, maximum, spendersOf } from './chain-port.ts'

/** Approvals rarely change; balances are read each time. */
const approvalsMs = 3_000
const ownersMax = 10_000

type Known = { atMs: number; allowances: Map<string, bigint> }

const tokenOf = (asset: AssetType): Address =>
  asset === 'COLLATERAL'
    ? contracts.pusd
    : asset === 'CONDITIONAL'
      ? contracts.conditionalTokens
      : contracts.positionManager

export const polygonPort = (reads: Reads): ChainPort => {
  const known = new Map<string, Known>()
  const deployed = new Set<string>()

  const allowancesOf = async (owner: Address, how: 'read' | 'update'): Promise<Map<string, bigint>> => {
    const entry = known.get(owner)
    if (how === 'read' && entry && performance.now() - entry.atMs < approvalsMs) return entry.allowances
    const list = await reads.approvals(owner)
    const allowances = new Map(
      list.map(({ token, spender, kind, allowance }) => [
        `${token} ${spender}`,
        kind === 'erc20' ? allowance : allowance === 0n ? 0n : maximum,
      ]),
    )
    if (known.size > ownersMax) known.clear()
    known.set(owner, { atMs: performance.now(), allowances })
    return allowances
  }

  return {
    funds: async (wallet, asset, token, how) => {
      const balanceOf = async () =>
        asset === 'COLLATERAL'
          ? (await reads.dollars(wallet)).pusd
          : ((await reads.shares(wallet, [BigInt(token)]))[0] ?? 0n)
      const [balance, allowances] = await Promise.all([balanceOf(), allowancesOf(wallet, how)])
      return {
        balance,
        allowances: Object.fromEntries(
          spendersOf(asset).map((spender) => [spender, allowances.get(`${tokenOf(asset)} ${spender}`) ?? 0n]),
        ),
      }
    },
    isDeployed: async (wallet) => {
      if (deployed.has(wallet)) return true
      if (!(await reads.isDeployed(wallet))) return false
      deployed.add(wallet)
      return true
    },
  }
}
