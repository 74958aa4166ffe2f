import type { Clock } from '#kernel/clock.ts'
import { notFound } from '#kernel/fault.ts'
import type { EvmScheme, PolicyReceipt, Signer } from '#kernel/signer.ts'
import { isAgentAction, type VenueScheme, type VenueSigner } from '#kernel/venue.ts'
import type { Queryable } from '#store/query.ts'
import { type AgentBook, momentMs } from './agent-book.ts'
import { livingAgents } from './agents.ts'
import type { Keystore } from './keystore.ts'
import { judgeIntent, judgeReceipt, type SigningChain } from './signing-rules.ts'
import { rememberedWallets, sealedWallet } from './store.ts'
import { judgeVenueIntent, type SigningVenue } from './venue-rules.ts'

type Needs = {
  /**
   * A pool of its own: signatures are made inside a transaction, and a pool whose connections are all in such
   * transactions would have none left for this one.
   */
  on: Queryable
  keystore: Pick<Keystore, 'lend' | 'lendAgent'>
  scheme: EvmScheme
  chains: readonly SigningChain[]
  venues?: readonly (SigningVenue & { scheme: VenueScheme })[]
  /** Where the agents of a request were read already; else they are read for each signature. */
  agents?: Pick<AgentBook, 'recent'>
  clock: Clock
  /** Whether the policy of this process made the receipt. */
  genuine: (receipt: PolicyReceipt) => boolean
}

export function custodySigner(needs: Needs): Signer & VenueSigner {
  const { on, keystore, scheme, chains, venues = [], clock, genuine } = needs
  const agentsOf = needs.agents?.recent ?? livingAgents
  const chainOf = new Map(chains.map((each) => [each.chainId, each]))
  const walletsOf = rememberedWallets()
  const venueOf = new Map(venues.map((each) => [each.venue, each]))

  return {
    venueKeys({ userId, venue: name, byAgent }) {
      const venue = venueOf.get(name)
      const fetch = () =>
        Promise.all([
          byAgent ? undefined : sealedWallet(on, userId, 'evm'),
          walletsOf(on, userId),
          agentsOf(on, { userId, venue: name }),
        ])
      const fetchedMs = performance.now()
      const fetching = fetch()
      fetching.catch(() => undefined)
      return {
        async sign(given, receipt) {
          // What is judged is what is signed: nobody changes the intent while the key is fetched.
          const intent = structuredClone(given)
          judgeReceipt({ intent, receipt, now: clock.now(), genuine: genuine(receipt) })
          const isOld = performance.now() - fetchedMs > momentMs
          const [sealed, wallets, living] = await (isOld ? fetch() : fetching)
          const own = wallets.find(({ kind }) => kind === 'evm')?.address
          if (!own || !venue || intent.userId !== userId) throw notFound('wallet')
          const agents = living.map(({ address }) => address)
          judgeVenueIntent({ intent, own, agents, venue, now: clock.now() })
          const sign = (secret: Uint8Array) => venue.scheme.sign(secret, intent)
          if (!isAgentAction(intent.action)) return keystore.lend(demand(sealed, 'wallet'), sign)
          const agent = living.find(({ address }) => address.toLowerCase() === intent.signer.toLowerCase())
          return keystore.lendAgent(demand(agent, 'agent'), sign)
        },
      }
    },
    async signBatch(given, receipt) {
      const intent = structuredClone(given)
      judgeReceipt({ intent, receipt, now: clock.now(), genuine: genuine(receipt) })
      const wallet = await sealedWallet(on, intent.userId, 'evm')
      if (!wallet) throw notFound('wallet')
      const chain = chainOf.get(intent.chainId)
      judgeIntent({ intent, own: wallet.address, chain, now: clock.now(), readCall: scheme.readCall })
      return keystore.lend(wallet, async (secret) => ({
        signature: await scheme.signBatch(secret, intent.batch),
        delegation: intent.delegation ? await scheme.signDelegation(secret, intent.delegation) : null,
      }))
    },
  }
}

function demand<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw notFound(what)
  return found
}
