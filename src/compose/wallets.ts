import { readWallets } from '#engines/custody/wallet-store.ts'
import type { OnSignup } from '#features/auth/register.ts'
import { createFaucetGrant, faucetGrantAdmission } from '#features/wallets/faucet-grant.ts'
import { createHoldings, type Holdings } from '#features/wallets/holdings.ts'
import type { PortfolioDeps } from '#features/wallets/portfolio.ts'
import { recentTokens } from '#features/wallets/recent-tokens.ts'
import type { VenueHoldings } from '#features/wallets/venue-holdings.ts'
import { createWallets, walletFacts } from '#features/wallets/wallets.ts'
import { transferData } from '#upstreams/evm/token-calls.ts'
import { createFaucet } from '#upstreams/faucet/faucet.ts'
import { transferLamports, transferTokens } from '#upstreams/solana/instruction-builder.ts'
import { deriveTokenAccount } from '#upstreams/solana/program-address.ts'
import { openEarn } from './earn.ts'
import { recipientAddresses, sendingChains } from './recipient-addresses.ts'
import type { SharedParts } from './section-parts.ts'
import { holdingFacts } from './trigger-orders.ts'

type HoldingsParts = Pick<SharedParts, 'core' | 'chains' | 'custody' | 'prices'>
type WalletParts = HoldingsParts &
  Pick<SharedParts, 'urls' | 'net' | 'holdings' | 'changed'> &
  Pick<PortfolioDeps, 'venueWorth'>

type VenueOf = { venueHoldings: () => VenueHoldings | undefined }

/**
 * Opens the reader of users' balances. It includes their vault shares if this gateway serves earn, and their wallet at
 * the prediction market if it serves that; the section opens later, and is asked for by a function.
 */
export function openHoldings({ core, chains, custody, prices, venueHoldings }: HoldingsParts & VenueOf) {
  const { db, clock, taskEngine } = core
  const earn = openEarn({ core, chains, custody, holdings: () => holdings })
  const holdings: Holdings = createHoldings({
    chains: chains.readers,
    prices,
    share: earn?.share ?? null,
    walletsOf: (userId) => readWallets(db, userId),
    recentTokens: (userId) => recentTokens(db, userId),
    ...holdingFacts(db),
    venue: venueHoldings,
    shownBalances: taskEngine.shownBalances,
    clock,
  })
  const changed = (userId: string, chainId: string) => holdings.invalidate(userId, chainId)
  return { earn, holdings, changed }
}

export function openWallets(parts: WalletParts) {
  const { core, urls, net, chains, custody, prices, holdings, changed, venueWorth } = parts
  const { config, db, taskEngine } = core
  const faucetGrant = urls.faucet
    ? createFaucetGrant({ faucet: createFaucet({ url: urls.faucet, net }), changed })
    : undefined
  /** A new user's wallets are funded where a faucet is configured. */
  const onSignup: OnSignup = async (tx, { userId, wallets: own }) => {
    if (!faucetGrant) return
    const admission = faucetGrantAdmission(own, chains.table)
    await taskEngine.enqueue(tx, { userId, kind: faucetGrant, input: {}, admission })
  }
  const operations = createWallets({
    db,
    chainRows: chains.table,
    holdings,
    venueWorth,
    clock: core.clock,
    walletsOf: (userId) => readWallets(db, userId),
    ledger: taskEngine.ledger,
    chains: sendingChains(chains),
    evmOf: (chainId) => chains.ports.get(chainId)?.chain,
    svmOf: (chainId) => chains.svmPorts.get(chainId)?.chain,
    batches: custody.batches,
    svm: custody.svm,
    policy: custody.policy.policy,
    prices,
    parseAddress: recipientAddresses(config, chains).parse,
    transferCall: (token, to, amountUnits) => ({
      to: token,
      value: 0n,
      data: transferData(to, amountUnits),
    }),
    instructions: { transferLamports, transferTokens },
    tokenAccountOf: deriveTokenAccount,
    evmAddressOf: custody.evmAddressOf,
    svmAddressOf: custody.svmAddressOf,
    changed,
  })
  return {
    part: 'wallets' as const,
    operations,
    kinds: faucetGrant ? [faucetGrant] : [],
    facts: walletFacts,
    faucetGrant,
    onSignup,
  }
}
