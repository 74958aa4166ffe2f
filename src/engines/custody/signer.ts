import type { Clock } from '#kernel/clock.ts'
import { notFound } from '#kernel/contract/fault.ts'
import type { PredictionCrypto } from '#kernel/money/prediction-actions.ts'
import { isAgentAction } from '#kernel/money/venue-actions.ts'
import type {
  EvmCrypto,
  PolicyReceipt,
  PredictionSigner,
  Signer,
  SvmCrypto,
  SvmDecoder,
  SvmSigner,
  VenueCrypto,
  VenueSigner,
} from '#kernel/task/signer.ts'
import type { Queryable } from '#store/query.ts'
import { type AgentCache, agentCacheMs } from './agent-key-cache.ts'
import { activeAgents } from './agent-key-store.ts'
import { assertIntent, assertReceipt, type SigningChain } from './evm-rules.ts'
import type { Keystore } from './keystore.ts'
import { assertPredictionIntent, type SigningPredictionVenue } from './prediction-rules.ts'
import { assertSvmIntent, type SigningSvmChain } from './svm-rules.ts'
import { assertVenueIntent, type SigningVenue } from './venue-rules.ts'
import { createCachedWallets, sealedWallet } from './wallet-store.ts'

type SignerDeps = {
  /** The signer's own pool: signing in transactions that hold all connections of one pool would deadlock. */
  db: Queryable
  keystore: Pick<Keystore, 'withKey' | 'withAgentKey'>
  crypto: EvmCrypto
  chains: readonly SigningChain[]
  svm?: { crypto: Pick<SvmCrypto, 'signBytes'>; decoder: SvmDecoder; chains: readonly SigningSvmChain[] }
  venues?: readonly (SigningVenue & { crypto: VenueCrypto })[]
  predictions?: readonly (SigningPredictionVenue & { crypto: PredictionCrypto })[]
  /** The cache of agents that the request has read already; if absent, agents are read for each signature. */
  agents?: Pick<AgentCache, 'cached'>
  clock: Clock
  /** Throws while money of the chain is on hold; nothing is signed then, whatever asks for it. */
  assertFree: (chainId: string) => void
  isAuthentic: (receipt: PolicyReceipt) => boolean
}

export function createCustodySigner(deps: SignerDeps): Signer & SvmSigner & VenueSigner & PredictionSigner {
  const { db, keystore, crypto, chains, svm, venues = [], clock, assertFree, isAuthentic } = deps
  const { predictions = [] } = deps
  const activeAgentsOf = deps.agents?.cached ?? activeAgents
  const chainOf = new Map(chains.map((each) => [each.chainId, each]))
  const walletsOf = createCachedWallets()
  const venueOf = new Map(venues.map((each) => [each.venue, each]))

  return {
    venueKeys({ userId, venue: name, byAgent }) {
      const venue = venueOf.get(name)
      const fetch = () =>
        Promise.all([
          byAgent ? undefined : sealedWallet(db, userId, 'evm'),
          walletsOf(db, userId),
          activeAgentsOf(db, { userId, venue: name }),
        ])
      const fetchedMs = performance.now()
      const fetching = fetch()
      fetching.catch(() => undefined)
      return {
        async sign(given, receipt) {
          // A copy is checked and signed, so that no caller can change the intent in between.
          const intent = structuredClone(given)
          assertFree(intent.chainId)
          assertReceipt({ intent, receipt, now: clock.now(), isAuthentic: isAuthentic(receipt) })
          const isOld = performance.now() - fetchedMs > agentCacheMs
          const [sealed, wallets, agentRows] = await (isOld ? fetch() : fetching)
          const own = wallets.find(({ kind }) => kind === 'evm')?.address
          if (!own || !venue || intent.userId !== userId) throw notFound('wallet')
          const agents = agentRows.map(({ address }) => address)
          assertVenueIntent({ intent, own, agents, venue, now: clock.now() })
          const sign = (secret: Uint8Array) => venue.crypto.sign(secret, intent)
          if (!isAgentAction(intent.action)) return keystore.withKey(required(sealed, 'wallet'), sign)
          const agent = agentRows.find(({ address }) => address.toLowerCase() === intent.signer.toLowerCase())
          return keystore.withAgentKey(required(agent, 'agent'), sign)
        },
      }
    },
    async signBatch(given, receipt) {
      const intent = structuredClone(given)
      assertFree(intent.chainId)
      assertReceipt({ intent, receipt, now: clock.now(), isAuthentic: isAuthentic(receipt) })
      const wallet = await sealedWallet(db, intent.userId, 'evm')
      if (!wallet) throw notFound('wallet')
      const chain = chainOf.get(intent.chainId)
      assertIntent({ intent, own: wallet.address, chain, now: clock.now(), readCall: crypto.decodeCall })
      return keystore.withKey(wallet, async (secret) => ({
        signature: await crypto.signBatch(secret, intent.batch),
        delegation: intent.delegation ? await crypto.signDelegation(secret, intent.delegation) : null,
      }))
    },
    async signPrediction(given, receipt) {
      const intent = structuredClone(given)
      assertFree(intent.chainId)
      assertReceipt({ intent, receipt, now: clock.now(), isAuthentic: isAuthentic(receipt) })
      const wallet = await sealedWallet(db, intent.userId, 'evm')
      const venue = predictions.find((each) => each.venue === intent.venue)
      if (!wallet || !venue) throw notFound('wallet')
      const action = assertPredictionIntent({
        intent,
        own: wallet.address,
        venue,
        now: clock.now(),
        readCall: crypto.decodeCall,
      })
      return keystore.withKey(wallet, (secret) => venue.crypto.sign(secret, action))
    },
    async signMessage(given, receipt) {
      const intent = structuredClone(given)
      assertFree(intent.chainId)
      assertReceipt({ intent, receipt, now: clock.now(), isAuthentic: isAuthentic(receipt) })
      const wallet = await sealedWallet(db, intent.userId, 'svm')
      if (!wallet || !svm) throw notFound('wallet')
      const chain = svm.chains.find(({ chainId }) => chainId === intent.chainId)
      const message = assertSvmIntent({ intent, own: wallet.address, chain, decoder: svm.decoder })
      return keystore.withKey(wallet, (secret) => svm.crypto.signBytes(secret, message))
    },
  }
}

function required<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw notFound(what)
  return found
}
