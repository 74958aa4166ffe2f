import { createEarn } from '#features/earn/earn.ts'
import type { Holdings } from '#features/wallets/holdings.ts'
import type { Token } from '#kernel/money/chains.ts'
import { createVault } from '#upstreams/vault/vault.ts'
import type { Parts } from './section-parts.ts'

type EarnParts = Pick<Parts, 'core' | 'chains' | 'custody'> & {
  /** The holdings are a function, because holdings list earn's shares, and earn invalidates holdings. */
  holdings: () => Holdings
}

export const shareTokenAt = (address: string): Token => ({
  symbol: 'evUSDC',
  name: 'Earn vault share',
  decimals: 18,
  address,
})

/** Opens the section of earn; undefined where the chain of the vault is not configured. */
export function openEarn({ core, chains, custody, holdings }: EarnParts) {
  const { config, log, clock, random, db, taskEngine } = core
  const chain = chains.ports.get(config.EARN_CHAIN_ID)?.chain
  if (!chain) return undefined
  const { row } = chain
  const address = config.EARN_VAULT_ADDRESS
  const vault = createVault({ chain, chainId: row.id, address, asset: row.usdc })
  const shareToken = shareTokenAt(address)
  const earn = createEarn({
    db,
    vault,
    chain: row,
    shareToken,
    ledger: taskEngine.ledger,
    clock,
    random,
    batches: custody.batches,
    policy: custody.policy.policy,
    evmAddressOf: custody.evmAddressOf,
    transact: taskEngine.transact,
    events: taskEngine.events,
    log,
    finalBlock: chain.finalBlock,
    changed: (userId, chainId) => holdings().invalidate(userId, chainId),
    limits: { minDepositUsdc: config.EARN_MIN_DEPOSIT_USDC, minWithdrawUsdc: config.EARN_MIN_WITHDRAW_USDC },
  })
  const asset = row.tokens.find((token) => token.address === row.usdc)!
  const share = { chainId: row.id, token: shareToken, asset, assetsOf: vault.assetsOf }
  return { ...earn, part: 'earn' as const, vault, share }
}
