import type { EventLog } from '#durable/events/event-log.ts'
import type { Ledger } from '#durable/ledger/ledger.ts'
import type { Transact } from '#durable/transactions.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { Clock } from '#kernel/clock.ts'
import { implement, taskOf } from '#kernel/contract/operation.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Chain, Token } from '#kernel/money/chains.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { Policy } from '#kernel/task/signer.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import { auditSchedule, createEarnAudit } from './audit.ts'
import { contract } from './contract.ts'
import { createDeposit } from './deposit.ts'
import { createEarnSync } from './external-share-sync.ts'
import { type EarnLimits, earnLimits } from './limits.ts'
import { createPositionsReader } from './positions.ts'
import { createSettledReader } from './settled-reading.ts'
import { createSnapshotKind, snapshotSchedule } from './share-price-snapshot.ts'
import { createVaultRates, priceText, type VaultRates } from './vault-rates.ts'
import { createWithdraw } from './withdraw.ts'

export type EarnDeps = {
  db: Queryable
  vault: Vault
  chain: Pick<Chain, 'displayName' | 'usdc'>
  shareToken: Token
  ledger: Pick<Ledger, 'balance' | 'subAccounts'>
  batches: EvmBatches
  policy: Policy
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  transact: Transact
  events: Pick<EventLog, 'add' | 'notify'>
  finalBlock: () => Promise<bigint>
  log: Log
  clock: Clock
  random: Random
  limits?: EarnLimits
}
type ViewDeps = Pick<EarnDeps, 'vault' | 'chain'> & { limits: EarnLimits; rates: VaultRates }

async function infoView({ vault, chain, rates, limits }: ViewDeps) {
  const [{ state, at }, { apy, apy7d, apy30d }] = await Promise.all([rates.state(), rates.yield()])
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
}

async function vaultView({ vault, chain, rates }: ViewDeps) {
  const { state } = await rates.state()
  return {
    chain_id: vault.chainId,
    vault_address: vault.address,
    asset: { address: chain.usdc, symbol: 'USDC', decimals: usdcDecimals },
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
}

export function createEarn(deps: EarnDeps) {
  const { db, vault, chain, clock, limits = earnLimits } = deps
  const { usdc } = chain
  const rates = createVaultRates({ db, vault, clock })
  const readSettled = createSettledReader({ db, vault, usdc, ledger: deps.ledger, clock })
  const vaultTask = { ...deps, usdc, limits, rates, readSettled }
  const depositTask = createDeposit(vaultTask)
  const comparisonDeps = { ...deps, readSettled }
  const audit = createEarnAudit(comparisonDeps)
  const positionsOf = createPositionsReader({ ...comparisonDeps, chainName: chain.displayName, rates })

  const operations = implement(contract, {
    info: () => infoView(vaultTask),
    vault: () => vaultView(vaultTask),
    enable: depositTask,
    deposit: depositTask,
    withdraw: createWithdraw(vaultTask),
    sync: taskOf(createEarnSync(comparisonDeps)),
    positions: async (input, { userId }) => positionsOf(userId, input),
  })

  return {
    operations,
    kinds: [createSnapshotKind(rates.snapshot), audit.kind],
    schedules: [snapshotSchedule, auditSchedule],
    metrics: { earn: audit.metrics },
    facts: {
      asset: 'USDC',
      chain_id: vault.chainId,
      min_deposit_usdc: limits.minDepositUsdc,
      min_withdraw_usdc: limits.minWithdrawUsdc,
    },
    snapshot: rates.snapshot,
  }
}
