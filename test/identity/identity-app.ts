/** The product on a database of its own, with two chains that no test requests. */
import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { Overrides } from '#compose/compose.ts'
import { createEnvKek } from '#engines/custody/key-encryption-keys.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { ApplyAct, Operation } from '#kernel/contract/operation.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { openInstance } from '../harness/instance.ts'
import { ownDatabase } from '../harness/own-database.ts'

export const rawKeyOf = (privateKey: KeyObject) =>
  createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32)

export const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
export const vault = '0x1111111111111111111111111111111111111111'
export const delegate = '0x000000009B1D0aF20D8C6d0A44e162d11F9b8f00'

const nowhere = 'http://127.0.0.1:1'
const env = {
  POLICY_TX_USD_MAX: '1000',
  POLICY_DAY_USD_MAX: '5000',
  EARN_VAULT_ADDRESS: vault,
}

export type Agent = {
  agentId: string
  publicKey: Buffer
  sign(message: string | Uint8Array): Buffer
}

export const newKek = (id: string) =>
  createEnvKek(id, Buffer.from(systemRandom.bytes(32)).toString('base64'), systemRandom)

type Options = Pick<Overrides, 'keyEncryptionKeys' | 'onSignup'>

export async function createIdentityApp(options: Options = {}) {
  await using parts = new AsyncDisposableStack()
  const { url, database } = parts.use(await ownDatabase())
  /** Several of them share the database. */
  const instances = parts.use(new AsyncDisposableStack())
  const instance = async (more: Options = {}) => instances.use(await createInstance(url, more))
  const main = await instance(options)
  const owned = parts.move()
  return { ...main, database, instance, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
export type IdentityApp = Awaited<ReturnType<typeof createIdentityApp>>

async function createInstance(databaseUrl: string, overrides: Options) {
  const time = { offsetMs: 0 }
  const clock: Clock = { now: () => new Date(Date.now() + time.offsetMs) }
  const opened = await openInstance({
    databaseUrl,
    urls: { evm: { '8453': nowhere, '42161': nowhere } },
    env,
    overrides: { clock, ...overrides },
  })
  const { db, transactions, random, custody, features } = opened
  const { operations, auth, credits } = features
  const ask = createAsk(operations, transactions.run)
  return {
    db,
    transactions,
    transact: transactions.run,
    clock,
    random,
    time,
    ask,
    confirm: createConfirm(operations, transactions.run),
    operations,
    auth,
    credits,
    policy: custody.policy,
    keystore: custody.keystore,
    register: () => registerAgent(ask),
    token: async (agent: Agent) => (await ask('auth_token', tokenRequest(agent, clock))).token,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
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
  pending_changes: {
    change_id: string
    field: string
    per_day_usd?: string
    tokens?: ChainAddress[] | null
  }[]
}
type Ask = (name: string, input?: object, caller?: Caller | null, address?: string) => Promise<Answer>

type Transact = <T>(run: (tx: Tx) => Promise<T>) => Promise<T>
const afterCommit = () => {}

/** An act runs in a transaction, as behind a door. */
const createAsk =
  (operations: readonly Operation[], transact: Transact): Ask =>
  async (name, input = {}, caller = null, address = '127.0.0.1') => {
    const operation = operations.find((each) => each.name === name)
    if (operation?.entry.kind !== 'act' && operation?.entry.kind !== 'read') throw new Error(`no ${name}`)
    const run = operation.run as (input: object, caller: Caller | null, facts: object) => Promise<Answer>
    const facts = { id: 'request', address, signal: new AbortController().signal }
    const isAct = operation.group === 'policy' && operation.entry.kind === 'act'
    return isAct
      ? transact((tx) => run(input, caller, { ...facts, tx, afterCommit }))
      : run(input, caller, facts)
  }

/** What the engine runs once the person has confirmed an act. */
const createConfirm =
  (operations: readonly Operation[], transact: Transact) =>
  async (name: string, input: object, person: Caller): Promise<Answer> => {
    const operation = operations.find((each) => each.name === name)
    if (!operation || !('apply' in operation.run)) throw new Error(`nobody confirms ${name}`)
    const run = await (operation.run.apply as ApplyAct)(input as JsonObject, person, person.userId)
    return transact((tx) => run({ tx, afterCommit })) as Promise<Answer>
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
