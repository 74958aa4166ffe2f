import { hash as digest, type KeyObject } from 'node:crypto'
import { createLru } from '#kernel/async/create-lru.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Scope } from '#kernel/contract/caller.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'
import type { Queryable } from '#store/query.ts'
import { decodeBase64, importKey, signatureBytes, verifySignature } from './ed25519.ts'
import type { Attempts, FailureBudget } from './failure-budgets.ts'
import { isAgentId } from './signed-texts.ts'
import * as store from './store.ts'

/** docs/decisions/0006-scopes.md says why a registered key has these scopes. */
export const keypairScopes: readonly Scope[] = ['read', 'chat', 'trade', 'earn', 'manage', 'propose']

const windowSeconds = 300
/**
 * How long a used signature is stored, counted from its signed timestamp, which may be ahead of the clock. It is twice
 * the window, because an instance whose clock is behind must still find a signature that it would accept.
 */
const replayWindowMs = 2 * windowSeconds * 1000
/** Timestamps from here on are in milliseconds: seconds get here in the year 5138, milliseconds did in 1973. */
const millisecondsFrom = 100_000_000_000
const pairFailuresMax = 10
const addressFailuresMax = 100

/**
 * A valid public key that belongs to nobody. The signature of an unknown agent is checked with this key, so that an
 * unknown agent costs the same time as a wrong signature.
 */
const dummyKey = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')

export const readSignature = (text: string): Uint8Array => {
  const signature = decodeBase64(text, signatureBytes)
  if (signature) return signature
  throw invalid(
    'signature',
    'value_error',
    'Input should be base64 of a 64-byte Ed25519 signature: 88 characters, no hexadecimal',
  )
}

export function failureBudgets(subject: string, ip: string): FailureBudget[] {
  const address = addressKey(ip)
  return [
    { key: `pair|${subject}|${address}`, failuresMax: pairFailuresMax, owner: 'user' },
    { key: address, failuresMax: addressFailuresMax, owner: 'address' },
  ]
}

type SignedBy = { agentId: string; timestamp: number; signature: string }
/** A signature that an agent's key has just made, and the row that marks it as used. */
export type KeyProof = { userId: string; spent: { digest: Buffer; expiresAt: Date; publicKey: Buffer } }
export type KeyCheck = {
  /** Throws unless a key of the agent has signed one of the texts within the window; `signs` describes that text. */
  verify(
    signed: SignedBy,
    messages: readonly Uint8Array[],
    at: { address: string; db?: Queryable; signs: string },
  ): Promise<KeyProof>
}
type KeyCheckDeps = { db: Queryable; clock: Clock; attempts: Attempts }

export const replayed = (timestamp: number, now: Date): Fault =>
  new Fault(
    'signature_replayed',
    'This signature was already used. Count the timestamp up by one and sign again; workers that share an agent should sign milliseconds',
    { extras: { server_time: Math.floor(now.getTime() / 1000), next_timestamp: timestamp + 1 } },
  )

export function createKeyCheck({ db, clock, attempts }: KeyCheckDeps): KeyCheck {
  const imported = createLru<string, KeyObject>(10_000)

  const isSignedBy = (raw: Uint8Array, messages: readonly Uint8Array[], signature: Uint8Array): boolean => {
    const name = Buffer.from(raw).toString('hex')
    const cached = imported.get(name)
    const key = cached ?? importKey(raw)
    const good = messages.some((message) => verifySignature(key, message, signature))
    // Every rejection costs one import of a key, so that timing does not reveal which agents are cached.
    if (good) imported.set(name, key)
    else if (cached) importKey(raw)
    return good
  }

  return {
    async verify({ agentId, timestamp, signature: text }, messages, { address, db: handle = db, signs }) {
      const signature = readSignature(text)
      const budgets = failureBudgets(isAgentId(agentId) ? agentId : '', address)
      const nowSeconds = Math.floor(clock.now().getTime() / 1000)
      const signedMs = timestamp >= millisecondsFrom ? timestamp : timestamp * 1000
      const signedSeconds = Math.floor(signedMs / 1000)
      if (!Number.isSafeInteger(signedMs) || Math.abs(nowSeconds - signedSeconds) > windowSeconds)
        throw new Fault(
          'stale_timestamp',
          'The signed timestamp is more than 300 s away from server_time. Correct the clock and sign again',
          { extras: { server_time: nowSeconds } },
        )
      const keys = isAgentId(agentId) ? await store.keysOfAgent(handle, agentId) : []
      const agent = keys.find(({ public_key }) => isSignedBy(public_key, messages, signature))
      if (keys.length === 0) isSignedBy(dummyKey, messages, signature)
      if (!agent) {
        attempts.fail(budgets)
        throw new Fault(
          'invalid_signature',
          `The agent is unknown, or the signature does not match its key: sign the UTF-8 bytes of ${signs}`,
        )
      }
      if (agent.suspended_at)
        throw new Fault('suspended', 'The account is suspended; ask the operator of this gateway')
      const spent = {
        digest: digest('sha256', signature, 'buffer'),
        expiresAt: new Date(signedMs + replayWindowMs),
        publicKey: Buffer.from(agent.public_key),
      }
      return { userId: agent.user_id, spent }
    },
  }
}
