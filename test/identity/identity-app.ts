/** Identity, custody, credits and policy on a database of their own. */
import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { ledger } from '#durable/ledger.ts'
import { auth } from '#features/auth/auth.ts'
import type { OnSignup } from '#features/auth/register.ts'
import { credits } from '#features/credits/credits.ts'
import { type PlatformLimits, policy } from '#features/policy/policy.ts'
import { user } from '#features/user/user.ts'
import { envKek, type KeyEncryptionKeys, keyEncryptionKeys } from '#features/wallets/key-encryption-keys.ts'
import { keystore } from '#features/wallets/keystore.ts'
import { walletsOf } from '#features/wallets/store.ts'
import type { Caller } from '#kernel/caller.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Operation } from '#kernel/operation.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { evmCrypto } from '#upstreams/evm/sign.ts'
import { svmCrypto } from '#upstreams/solana/sign.ts'
import { testDatabase } from '../harness/cluster.ts'

export const rawKeyOf = (privateKey: KeyObject) =>
  createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32)

export const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
export const vault = '0x1111111111111111111111111111111111111111'
export const delegate = '0x000000009B1D0aF20D8C6d0A44e162d11F9b8f00'

const limits: PlatformLimits = {
  perTransactionMicros: 1_000_000_000n,
  perDayMicros: 5_000_000_000n,
  chains: ['8453', '42161'],
  tokens: null,
  contracts: [{ chainId: '8453', address: vault }],
}

export type Agent = {
  agentId: string
  publicKey: Buffer
  sign(message: string | Uint8Array): Buffer
}
export type IdentityApp = Awaited<ReturnType<typeof createIdentityApp>>

export const newKek = (id: string) =>
  envKek(id, Buffer.from(systemRandom.bytes(32)).toString('base64'), systemRandom)

type Options = {
  keyEncryptionKeys?: KeyEncryptionKeys
  limits?: Partial<PlatformLimits>
  onSignup?: OnSignup
  poolMax?: number
}

export async function createIdentityApp(options: Options = {}) {
  const home = await testDatabase()
  const database = openDatabase({
    url: home.url,
    poolMax: options.poolMax ?? 20,
    applicationName: 'identity test',
  })
  const made = assembleApp(database, options)
  return {
    ...made,
    database,
    async [Symbol.asyncDispose]() {
      await database.close()
      await home.drop()
    },
  }
}

/** One instance; several of them share a database. */
export function assembleApp(database: Database, options: Options = {}) {
  const time = { offsetMs: 0 }
  const clock: Clock = { now: () => new Date(Date.now() + time.offsetMs) }
  const random = systemRandom
  const db = database.pool
  const { transaction: transact } = database
  const revoked: string[] = []
  const listeners: ((hash: string) => void)[] = []
  const store = keystore({
    keyEncryptionKeys: options.keyEncryptionKeys ?? keyEncryptionKeys(newKek('first')),
    crypto: { evm: evmCrypto, svm: svmCrypto },
    clock,
    random,
  })
  const creditsPart = credits({ db, ledger, clock })
  const policyPart = policy({
    db,
    transact,
    clock,
    random,
    walletsOf,
    platformLimits: { ...limits, ...options.limits },
  })
  const authPart = auth({
    db,
    transact,
    clock,
    random,
    keystore: store,
    baseUrl: () => 'http://gateway.test',
    grantSignup: creditsPart.grantSignup,
    ...(options.onSignup && { onSignup: options.onSignup }),
    async publishRevoked(_userId, hashes) {
      for (const hash of hashes) {
        revoked.push(hash)
        for (const listener of listeners) listener(hash)
      }
    },
  })
  listeners.push(authPart.onRevoked)
  const operations = [
    ...authPart.operations,
    ...creditsPart.operations,
    ...policyPart.operations,
    ...user({ db, walletsOf, credits: creditsPart, policySummary: policyPart.summary }),
  ]
  const ask = createAsk(operations)
  return {
    db,
    transact,
    clock,
    random,
    time,
    revoked,
    listeners,
    ask,
    operations,
    auth: authPart,
    credits: creditsPart,
    policy: policyPart,
    keystore: store,
    register: () => registerAgent(ask),
    token: async (agent: Agent) => (await ask('auth_token', tokenRequest(agent, clock))).token,
  }
}

type ChainAddress = { chain_id: string; address: string }
/** The fields that these tests read, of every operation. */
export type Answer = {
  nonce: string
  challenge: string
  agent_id: string
  token: string
  user_id: string
  wallets: { address: string; chain_type: string }[]
  credits_available: number
  buckets: { expires_at: string }[]
  packs: { price_usd: string; credits: number }[]
  scopes: string[]
  policy_summary: { paused: boolean }
  on: boolean
  scope: string
  since: string | null
  version: number
  per_transaction_usd: string
  per_day_usd: string
  chains: string[]
  tokens: ChainAddress[] | null
}
type Ask = (name: string, input?: object, caller?: Caller | null, address?: string) => Promise<Answer>

const createAsk =
  (operations: Operation[]): Ask =>
  async (name, input = {}, caller = null, address = '127.0.0.1') => {
    const operation = operations.find((each) => each.name === name)
    if (operation?.entry.kind !== 'act' && operation?.entry.kind !== 'read') throw new Error(`no ${name}`)
    const run = operation.run as (input: object, caller: Caller | null, facts: object) => Promise<Answer>
    return run(input, caller, { id: 'request', address, signal: new AbortController().signal })
  }

export function newKey() {
  const { privateKey } = generateKeyPairSync('ed25519')
  return {
    publicKey: rawKeyOf(privateKey),
    sign: (message: string | Uint8Array) => sign(null, Buffer.from(message as string), privateKey),
  }
}

export async function registerAgent(ask: Ask): Promise<Agent> {
  const key = newKey()
  const { nonce, challenge } = await ask('auth_register', { public_key: key.publicKey.toString('base64') })
  const signature = key.sign(challenge).toString('base64')
  const { agent_id: agentId } = await ask('auth_verify', { nonce, signature })
  return { agentId, ...key }
}

export const secondsOf = (clock: Clock) => Math.floor(clock.now().getTime() / 1000)

export function tokenRequest(agent: Agent, clock: Clock, timestamp = secondsOf(clock)) {
  const signature = agent.sign(`${agent.agentId}${timestamp}`).toString('base64')
  return { agent_id: agent.agentId, timestamp, signature }
}

/** The fault that a promise rejects with; fails where it resolves or rejects with a bug. */
export async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof Fault) return error
  throw new Error('a fault was expected', { cause: error })
}
