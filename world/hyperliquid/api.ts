import { canonicalAction, userSigned } from './actions.ts'
import { principalOf } from './agents.ts'
import type { Engine } from './engine.ts'
import type { Answer } from './exchange.ts'
import { l1Digest, type Network, recoverAddress, type Signature, type Signed, userDigest } from './recover.ts'
import { address, natural, record, rejectMalformed, text } from './schema.ts'

/** The two requests of a client, over HTTP or a WebSocket. */
export type VenueApi = {
  info: (body: unknown) => unknown
  exchange: (body: unknown) => Answer
}

const envelope = record(
  ['nonce', natural],
  ['signature', record(['r', text], ['s', text], ['v', natural])],
  ['vaultAddress', address, 'optional'],
  ['expiresAfter', natural, 'optional'],
)

type Envelope = { nonce: number; signature: Signature; vaultAddress?: string; expiresAfter?: number }

type AcceptedNetworks = 'both' | 'mainnet' | 'testnet'

const networksOf: Record<AcceptedNetworks, readonly Network[]> = {
  both: ['Mainnet', 'Testnet'],
  mainnet: ['Mainnet'],
  testnet: ['Testnet'],
}

/** A digest for the wrong network recovers to an unknown address, so the known signer is the right one. */
const l1Signer = (engine: Engine, networks: readonly Network[], signed: Signed, signature: Signature) => {
  const { state } = engine.venue
  const signers = networks.map((network) => recoverAddress(l1Digest(signed, network), signature))
  return signers.find((signer) => signer && principalOf(state, signer)) ?? signers[0]
}

export const createVenueApi = (
  engine: Engine,
  info: VenueApi['info'],
  network: () => AcceptedNetworks = () => 'both',
): VenueApi => ({
  info,
  exchange: (body) => {
    const { signature, ...rest } = envelope(body) as Envelope
    const action = canonicalAction((body as { action?: unknown }).action)
    const byUser = userSigned[action.type]
    // The nonce inside the message is the signed one.
    if (byUser && action[byUser.nonce] !== rest.nonce) rejectMalformed()
    const networks = networksOf[network()]
    if (byUser && !networks.includes(action.hyperliquidChain as Network))
      return { status: 'err', response: `Invalid hyperliquidChain: ${action.hyperliquidChain}` }
    const signer = byUser
      ? recoverAddress(userDigest(action), signature)
      : l1Signer(engine, networks, { action, ...rest }, signature)
    if (!signer) return { status: 'err', response: 'Invalid signature' }
    const answer = engine.submit({ kind: 'act', signer, userSigned: byUser !== undefined, action, ...rest })
    return answer ?? rejectMalformed()
  },
})
