import type { Transact } from '#durable/transactions.ts'
import type { Keystore } from '#engines/custody/keystore.ts'
import type { Wallet } from '#engines/custody/wallet-store.ts'
import type { SignupGrants } from '#features/credits/signup-grants.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { agentId, isUuid, type Random, uuidv7 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { AuthInput } from './contract.ts'
import { decodeBase64, importKey, isUsableKey, publicKeyBytes, verifySignature } from './ed25519.ts'
import type { Attempts } from './failure-budgets.ts'
import { failureBudgets, readSignature } from './key-signature-check.ts'
import { challengeText } from './signed-texts.ts'
import * as store from './store.ts'

const challengeMs = 300_000

const readKey = (text: string): Uint8Array => {
  const raw = decodeBase64(text, publicKeyBytes)
  if (raw && isUsableKey(raw)) return raw
  throw invalid(
    'public_key',
    'value_error',
    'Input should be base64 of a 32-byte Ed25519 public key: 44 characters, no hexadecimal and no PEM',
  )
}

const duplicate = (agent_id: string | undefined) =>
  new Fault(
    'duplicate_key',
    'This public key is already registered: obtain a token for its agent_id with `auth_token`',
    { extras: { agent_id } },
  )

type RegisterDeps = { db: Queryable; clock: Clock; random: Random; baseUrl: () => string }

export const createRegisterHandler =
  ({ db, clock, random, baseUrl }: RegisterDeps) =>
  async ({ public_key: text, agent_name }: AuthInput<'register'>) => {
    const public_key = readKey(text)
    const known = await store.agentOfKey(db, public_key)
    if (known !== undefined) throw duplicate(known)
    const now = clock.now()
    const expires_at = later(now, challengeMs)
    // A nonce must be unpredictable, so this UUID has version 4; one of version 7 starts with the time.
    const nonce = uuidv4(random)
    const challenge = challengeText(baseUrl(), nonce, expires_at)
    await store.addChallenge(db, {
      nonce,
      public_key,
      agent_name: agent_name ?? null,
      text: challenge,
      expires_at,
      created_at: now,
    })
    return { challenge, nonce, expires_at: expires_at.toISOString() }
  }

function uuidv4(random: Random): string {
  const bytes = Buffer.from(random.bytes(16))
  bytes[6] = 0x40 | ((bytes[6] as number) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

export type OnSignup = (tx: Tx, user: { userId: string; wallets: Wallet[] }) => Promise<void>

type VerifyDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  random: Random
  attempts: Attempts
  keystore: Pick<Keystore, 'prepare' | 'provision'>
  signups: Pick<SignupGrants, 'forAgent'>
  onSignup: OnSignup
  announceSignUp: (userId: string) => void
}

export function createVerifyHandler(deps: VerifyDeps) {
  const { db, transact, clock, random, attempts, keystore, signups, onSignup, announceSignUp } = deps
  return async ({ nonce, signature: text }: AuthInput<'verify'>, address: string) => {
    const signature = readSignature(text)
    const budgets = failureBudgets(isUuid(nonce) ? nonce.toLowerCase() : '', address)
    const now = clock.now()
    const pendingChallenge = isUuid(nonce) ? await store.findChallenge(db, nonce, now) : undefined
    if (!pendingChallenge) {
      attempts.fail(budgets)
      throw invalidChallenge()
    }
    if (
      !verifySignature(importKey(pendingChallenge.public_key), Buffer.from(pendingChallenge.text), signature)
    ) {
      attempts.fail(budgets)
      throw new Fault(
        'invalid_signature',
        'The signature does not match the public key: sign the UTF-8 bytes of the challenge exactly as received',
      )
    }

    const userId = uuidv7(now, random)
    const wallets = await keystore.prepare(userId)
    const verified = await transact(async (tx) => {
      if (!(await store.claimChallenge(tx, nonce, clock.now()))) throw invalidChallenge()
      const agent_id = agentId(now, random)
      const person = { name: pendingChallenge.agent_name, email: null }
      await store.addUser(tx, { id: userId, agent_id, auth_scheme: 'keypair', created_at: now, ...person })
      if (!(await store.addKey(tx, pendingChallenge.public_key, userId, now)))
        throw duplicate(await store.agentOfKey(tx, pendingChallenge.public_key))
      const provisioned = await keystore.provision(tx, wallets)
      const credits_available = await signups.forAgent(tx, { userId, address }, now)
      await onSignup(tx, { userId, wallets: provisioned })
      return { agent_id, wallets_provisioning: false, credits_available }
    })
    announceSignUp(userId)
    return verified
  }
}

const invalidChallenge = () =>
  new Fault('invalid_challenge', 'The challenge is unknown, used or expired. Register again to get a new one')
