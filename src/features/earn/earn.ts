import type { Events } from '#durable/events.ts'
import type { Ledger } from '#durable/ledger.ts'
import type { Transact } from '#durable/transactions.ts'
import type { EvmBatches } from '#features/chains/batch.ts'
import type { Chain, Token } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { fromUnits } from '#kernel/money.ts'
import { fulfil, type Operation } from '#kernel/operation.ts'
import type { Policy } from '#kernel/signer.ts'
import type { TaskKind, Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import { admissions } from './admit.ts'
import { earnAudit } from './audit.ts'
import { contract } from './contract.ts'
import { type EarnLimits, earnLimits } from './limits.ts'
import { market, priceText } from './market.ts'
import { positionsReader } from './positions.ts'
import { earnRules } from './settle.ts'
import { settledReading } from './settled-reading.ts'
import { syncing } from './sync.ts'

export type EarnNeeds = {
  on: Queryable
  vault: Vault
  chain: Pick<Chain, 'displayName' | 'usdc'>
  shareToken: Token
  ledger: Pick<Ledger, 'balance' | 'books'>
  batches: EvmBatches
  policy: Policy
  evmAddressOf: (userId: string) => Promise<string>
  /** A receipt moved something in a user's wallet. */
  changed: (userId: string, chainId: string) => void
  transact: Transact
  events: Pick<Events, 'add' | 'told'>
  /** The newest block that is not expected to change any more. */
  finalBlock: () => Promise<bigint>
  log: Log
  clock: Clock
  random: Random
  limits?: EarnLimits
}
export type Earn = {
  operations: Operation[]
  snapshot(): Promise<void>
  audit: TaskKind
  gauges(): Promise<{ name: string; help: string; value: number }[]>
}

const usdcDecimals = 6

export function earn(needs: EarnNeeds): Earn {
  const { on, vault, chain, shareToken, batches, policy, clock, changed, limits = earnLimits } = needs
  const { usdc } = chain
  const vaultMarket = market({ on, vault, clock })
  const readSettled = settledReading({ on, vault, usdc, ledger: needs.ledger, clock })
  const admit = admissions({ ...needs, usdc, limits, market: vaultMarket, readSettled })
  const rules = earnRules({ on, vault, usdc, shareToken, ledger: needs.ledger, changed, clock })
  const released = async (tx: Tx, taskId: string) => {
    await policy.release(tx, taskId)
    await batches.release(tx, taskId)
  }
  const deposit = { admit: admit.deposit, steps: batches.steps(rules.deposit), released }
  const withdraw = { admit: admit.withdraw, steps: batches.steps(rules.withdraw), released }
  const comparing = { ...needs, readSettled }
  const audit = earnAudit(comparing)
  const positionsOf = positionsReader({ ...comparing, chainName: chain.displayName, market: vaultMarket })

  const operations = fulfil(contract, {
    async info() {
      const [{ state, at }, { apy, apy7d, apy30d }] = await Promise.all([
        vaultMarket.state(),
        vaultMarket.yield(),
      ])
      return {
        vault_address: vault.address,
        chain_id: vault.chainId,
        vault_chain_name: chain.displayName,
        asset: 'USDC' as const,
        apy,
        apy_7d: apy7d,
        apy_30d: apy30d,
        apy_source: 'share_price' as const,
        performance_fee_percentage: null,
        share_price: priceText(vault, state.price),
        total_assets_usdc: fromUnits(state.totalAssetsUnits, usdcDecimals),
        min_deposit_usdc: limits.minDepositUsdc,
        min_withdraw_usdc: limits.minWithdrawUsdc,
        as_of: at.toISOString(),
      }
    },

    async vault() {
      const { state } = await vaultMarket.state()
      return {
        chain_id: vault.chainId,
        vault_address: vault.address,
        asset: { address: usdc, symbol: 'USDC', decimals: usdcDecimals },
        share_decimals: state.shareDecimals,
        total_assets: String(state.totalAssetsUnits),
        total_supply: String(state.totalSupplyUnits),
        convert_to_assets_one: String(state.oneShareUnits),
        as_of_block: Number(state.block),
        raw: {
          asset: state.asset,
          decimals: state.shareDecimals,
          totalAssets: String(state.totalAssetsUnits),
          totalSupply: String(state.totalSupplyUnits),
          block_time: new Date(state.blockTimeSeconds * 1_000).toISOString(),
        },
      }
    },

    enable: deposit,
    deposit,
    withdraw,
    sync: syncing(comparing),
    positions: async (input, { userId }) => positionsOf(userId, input),
  })

  return { operations, snapshot: vaultMarket.snapshot, audit: audit.kind, gauges: audit.gauges }
}
