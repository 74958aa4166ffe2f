import { randomUUID } from 'node:crypto'
import { type RelayerCaller, requireRelayer } from './auth.ts'
import { addressOf as accountAddress } from './chain/accounts.ts'
import { contracts } from './chain/addresses.ts'
import type { Address, Reads } from './chain/chain-terms.ts'
import { safeOf, walletOf } from './chain/ids.ts'
import { HttpError, ok, pick, type Reply, type Request, type Route, route } from './http.ts'
import type { Engine } from './machine.ts'
import type { RealismControl } from './realism.ts'
import {
  addressOf,
  callsOfSafe,
  readBatch,
  readSafe,
  requireAllowedCalls,
  requireSignedBatch,
  requireSignedSafe,
} from './relay-checks.ts'
import type { RelayTransaction } from './state.ts'

export type RelayerDeps = {
  engine: Engine
  realism: RealismControl
  /** Absent without a chain: then nothing can be relayed. */
  reads: Reads | undefined
  wake: () => void
}

type Fields = Record<string, unknown>

const dayMs = 86_400_000
const bodyBytesMax = 131_072

const requireChain = ({ reads }: RelayerDeps): Reads => {
  if (!reads) throw new HttpError(503, 'relayer is not available')
  return reads
}

/** A relayer key is for its own account alone, a builder key for every user of the builder. */
const requireAccount = (caller: RelayerCaller, from: string): void => {
  if (caller.kind === 'relayer' && caller.address !== from.toLowerCase())
    throw new HttpError(401, 'invalid authorization')
}

/** When the quota ends of which the request takes a part. */
const requireQuota = ({ engine, realism }: RelayerDeps): number => {
  const { dailyQuota } = realism.current().relayer
  const { relayed } = engine.venue.state
  const nowMs = engine.nowMs()
  const isCurrent = nowMs < relayed.untilMs
  const untilMs = isCurrent ? relayed.untilMs : (Math.floor(nowMs / dayMs) + 1) * dayMs
  if (dailyQuota > 0 && isCurrent && relayed.count >= dailyQuota) {
    const seconds = Math.ceil((untilMs - nowMs) / 1_000)
    throw new HttpError(429, `quota exceeded: 0 units remaining, resets in ${seconds} seconds`)
  }
  return untilMs
}

const endStates: readonly string[] = ['STATE_CONFIRMED', 'STATE_FAILED', 'STATE_INVALID']

/** One action of a wallet at a time. */
const requireIdle = ({ engine, realism }: RelayerDeps, wallet: string): void => {
  const { busyRate } = realism.current().relayer
  if (realism.isHit('relayer', busyRate)) throw new HttpError(400, 'wallet busy: active action in progress')
  for (const each of engine.venue.state.relay.values())
    if (each.wallet === wallet.toLowerCase() && !endStates.includes(each.state))
      throw new HttpError(400, 'wallet has in-flight action')
}

const requireNonce = ({ realism }: RelayerDeps, given: bigint, onChain: bigint): void => {
  const { nonceMismatchRate } = realism.current().relayer
  const expected = realism.isHit('relayer', nonceMismatchRate) ? onChain + 1n : onChain
  if (given !== expected)
    throw new HttpError(400, `batch nonce ${given} does not match on-chain nonce ${expected}`)
}

/** What was checked of a request. */
type Checked = Pick<RelayTransaction, 'wallet'> &
  Partial<Pick<RelayTransaction, 'data' | 'nonce' | 'signature'>>

const checkCreate = (body: Fields, from: Address): Checked => {
  if (addressOf(body, 'to').toLowerCase() !== contracts.walletFactory.toLowerCase())
    throw new HttpError(400, 'invalid request: to')
  return { wallet: walletOf(from) }
}

const checkBatch = async (deps: RelayerDeps, body: Fields, from: Address): Promise<Checked> => {
  const { batch, signature } = readBatch(body)
  const { wallet, nonce } = batch
  if (walletOf(from).toLowerCase() !== wallet.toLowerCase())
    throw new HttpError(400, 'invalid request: depositWallet')
  requireAllowedCalls(batch.calls, deps.realism.current().relayer.refusedTargets)
  requireSignedBatch(batch, signature, from)
  requireNonce(deps, nonce, await requireChain(deps).walletNonce(wallet))
  if (Number(batch.deadline) * 1_000 <= deps.engine.nowMs()) throw new HttpError(400, 'deadline expired')
  return { wallet, nonce: String(nonce), signature }
}

const checkSafe = async (deps: RelayerDeps, body: Fields, from: Address): Promise<Checked> => {
  const { transaction, signature } = readSafe(body)
  const { safe, data, nonce } = transaction
  if (safeOf(from).toLowerCase() !== safe.toLowerCase())
    throw new HttpError(400, 'invalid request: proxyWallet')
  requireAllowedCalls(callsOfSafe(transaction), deps.realism.current().relayer.refusedTargets)
  requireSignedSafe(transaction, signature, from)
  requireNonce(deps, nonce, await requireChain(deps).safeNonce(safe))
  return { wallet: safe, data, nonce: String(nonce), signature }
}

const check = (deps: RelayerDeps, body: Fields, from: Address): Checked | Promise<Checked> => {
  if (body.type === 'WALLET-CREATE') return checkCreate(body, from)
  if (body.type === 'WALLET') return checkBatch(deps, body, from)
  if (body.type === 'SAFE') return checkSafe(deps, body, from)
  throw new HttpError(400, 'invalid request: type')
}

const submit = async (deps: RelayerDeps, request: Request): Promise<Reply> => {
  const { engine, realism, wake } = deps
  const caller = requireRelayer(request, engine.venue.state)
  const { body, text } = request
  if (typeof body !== 'object' || body === null || text.length > bodyBytesMax)
    throw new HttpError(400, 'invalid request body')
  const fields = body as Fields
  const from = addressOf(fields, 'from')
  requireAccount(caller, from)
  requireChain(deps)
  const quotaUntilMs = requireQuota(deps)
  const checked = await check(deps, fields, from)
  const wallet = checked.wallet.toLowerCase()
  requireIdle(deps, wallet)
  const nowMs = engine.nowMs()
  const transaction: RelayTransaction = {
    data: '0x',
    nonce: '0',
    signature: '0x',
    ...checked,
    wallet,
    from,
    to: addressOf(fields, 'to'),
    type: fields.type as RelayTransaction['type'],
    id: randomUUID(),
    metadata: typeof fields.metadata === 'string' ? fields.metadata.slice(0, 500) : '',
    body: fields,
    state: 'STATE_NEW',
    error: '',
    hash: '',
    attempt: null,
    createdMs: nowMs,
    updatedMs: nowMs,
    notBeforeMs: nowMs + realism.lagMs('relayerLag'),
  }
  engine.submit({ kind: 'relay', transaction, quotaUntilMs })
  wake()
  // Without a hash: it is known when the transaction has been sent.
  return ok({ transactionID: transaction.id, state: 'STATE_NEW' })
}

const iso = (ms: number): string => new Date(ms).toISOString()

const fieldsOf = (transaction: RelayTransaction) => ({
  ...pick(transaction, ['from', 'to', 'data', 'nonce', 'signature', 'state', 'type', 'metadata']),
  value: '0',
  owner: transaction.from,
})

const newView = (transaction: RelayTransaction) => ({
  transaction_id: transaction.id,
  transaction_hash: transaction.hash,
  ...fieldsOf(transaction),
  proxy_address: transaction.wallet,
  error_msg: transaction.error,
  created_at: iso(transaction.createdMs),
  updated_at: iso(transaction.updatedMs),
})

const oldView = (transaction: RelayTransaction) => ({
  transactionID: transaction.id,
  transactionHash: transaction.hash,
  ...fieldsOf(transaction),
  proxyAddress: transaction.wallet,
  createdAt: iso(transaction.createdMs),
  updatedAt: iso(transaction.updatedMs),
})

const nonceOf = async (deps: RelayerDeps, { query }: Request): Promise<string> => {
  const owner = addressOf({ address: query.get('address') }, 'address')
  const reads = requireChain(deps)
  const type = query.get('type')
  if (type === 'WALLET' || type === 'WALLET-CREATE') return String(await reads.walletNonce(walletOf(owner)))
  if (type === 'SAFE' || type === 'SAFE-CREATE') return String(await reads.safeNonce(safeOf(owner)))
  if (type === 'PROXY') return '0'
  throw new HttpError(400, 'invalid request: type')
}

const payload = async (deps: RelayerDeps, request: Request): Promise<Reply> =>
  ok({ address: accountAddress('relayer'), nonce: await nonceOf(deps, request) })

export const relayerRoutes = (deps: RelayerDeps): Route[] => {
  const { engine } = deps
  const { state } = engine.venue
  return [
    route('POST /submit', (request) => submit(deps, request)),
    route('GET /deployed', async (request) => {
      const address = addressOf({ address: request.query.get('address') }, 'address') as Address
      return ok({ deployed: await requireChain(deps).isDeployed(address) })
    }),
    route('GET /v1/account/transactions/params', (request) => payload(deps, request)),
    route('GET /v1/account/transactions/:id', (_request, [id = '']) => {
      const transaction = state.relay.get(id)
      if (!transaction) throw new HttpError(404, 'transaction not found')
      return ok(newView(transaction))
    }),
    route('GET /nonce', async (request) => ok({ nonce: await nonceOf(deps, request) })),
    route('GET /relay-payload', (request) => payload(deps, request)),
    route('GET /transaction', (request) => {
      const transaction = state.relay.get(request.query.get('id') ?? '')
      return ok(transaction ? [oldView(transaction)] : [])
    }),
    route('GET /transactions', (request) => {
      const caller = requireRelayer(request, state)
      const list = [...state.relay.values()].filter(
        ({ from }) => caller.kind === 'builder' || from.toLowerCase() === caller.address,
      )
      return ok(list.slice(-100).reverse().map(oldView))
    }),
  ]
}
