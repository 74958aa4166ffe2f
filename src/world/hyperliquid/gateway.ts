import { canonicalAction, userSigned } from './actions.ts'
import type { Engine } from './engine.ts'
import type { Answer } from './exchange.ts'
import { answerInfo } from './info.ts'
import { l1Digest, recoverAddress, type Signature, userDigest } from './recover.ts'
import { address, natural, record, refuse, text } from './schema.ts'

/** The two questions a client can ask, whichever door it comes through. */
export type Gateway = {
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

export const createGateway = (engine: Engine): Gateway => ({
  info: (body) => answerInfo(engine.venue, body),
  exchange: (body) => {
    const { signature, ...rest } = envelope(body) as Envelope
    const action = canonicalAction((body as { action?: unknown }).action)
    const byUser = userSigned[action.type]
    // The nonce inside the message is the one that was signed.
    if (byUser && action[byUser.nonce] !== rest.nonce) refuse()
    const digest = byUser ? userDigest(action) : l1Digest({ action, ...rest })
    const signer = recoverAddress(digest, signature)
    if (!signer) return { status: 'err', response: 'Invalid signature' }
    const answer = engine.submit({ kind: 'act', signer, userSigned: byUser !== undefined, action, ...rest })
    return answer ?? refuse()
  },
})
