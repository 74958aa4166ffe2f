import type { Config } from '#config.ts'
import type { Ground } from '#durable/ground.ts'
import { earn as makeEarn } from '#features/earn/earn.ts'
import type { Holdings } from '#features/wallets/holdings.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { vault as makeVault } from '#upstreams/vault/vault.ts'
import type { Chains } from './chains.ts'
import type { Custody } from './custody.ts'
import type { Stores } from './store.ts'

type Needs = {
  config: Config
  log: Log
  chains: Chains
  stores: Stores
  ground: Ground
  custody: Custody
  /** A function: holdings show what earn holds, and earn tells holdings what changed. */
  holdings: () => Holdings
}

/** Served where the chain of the vault is; without it the section does not exist. */
export function openEarn({ config, log, chains, stores, ground, custody, holdings }: Needs) {
  const chain = chains.ports.get(config.EARN_CHAIN_ID)?.chain
  if (!chain) return undefined
  const { row } = chain
  const on = stores.database.pool
  const address = config.EARN_VAULT_ADDRESS
  const vault = makeVault({ chain, chainId: row.id, address, asset: row.usdc })
  const shareToken = { symbol: 'evUSDC', name: 'Earn vault share', decimals: 18, address }
  const earn = makeEarn({
    on,
    vault,
    chain: row,
    shareToken,
    ledger: ground.ledger,
    clock,
    random,
    batches: custody.batches,
    policy: custody.policy.policy,
    evmAddressOf: custody.evmAddressOf,
    transact: ground.transact,
    events: ground.events,
    log,
    finalBlock: chain.finalBlock,
    changed: (userId, chainId) => holdings().invalidate(userId, chainId),
    limits: { minDepositUsdc: config.EARN_MIN_DEPOSIT_USDC, minWithdrawUsdc: config.EARN_MIN_WITHDRAW_USDC },
  })
  const asset = row.tokens.find((token) => token.address === row.usdc)!
  const share = { chainId: row.id, token: shareToken, asset, assetsOf: vault.assetsOf }
  return { ...earn, share }
}
