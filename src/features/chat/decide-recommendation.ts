import type { InnerCalls } from '#invoke/inner-calls.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { assertScope } from '#kernel/contract/assert-scope.ts'
import { type Caller, type RequestFacts, toActScope } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import { type InputOf, isScope, preparedAct } from '#kernel/contract/operation.ts'
import { isRecord, type JsonObject } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import type { ChatRecommendationRow } from '#store/tables/chat.ts'
import { callHash, keyOfCall } from './call-identity.ts'
import type { contract } from './contract.ts'
import { isKeyUsed } from './store.ts'
import type { Tool } from './tool-registry.ts'

/**
 * This module stores the decision about a recommendation; the first decision is final. An accepted call is started
 * under an idempotency key of its own before the decision is stored, so that a repeat after a crash finds the same
 * task.
 */

type Deps = {
  db: Queryable
  tools: () => ReadonlyMap<string, Tool>
  calls: () => InnerCalls
  /** Returns an idempotency key that no client can send. */
  keyOf: (name: string) => string
  clock: Clock
}
type DecideInput = InputOf<(typeof contract)['entries']['decide']>
type Prepared = {
  row: ChatRecommendationRow
  status: 'accepted' | 'declined'
  taskId: string | null
  isNew: boolean
}

/** A claimed decision may take this long before another request may decide; the start of a call takes less. */
const decidingMs = 120_000

export const recommendationsOf = (
  db: Queryable,
  chatIds: readonly string[],
): Promise<ChatRecommendationRow[]> =>
  query(
    db,
    'select * from chat_recommendation where chat_id = any($1::uuid[]) order by chat_id, recommendation_id',
    [chatIds],
  )

export function decide(deps: Deps) {
  return preparedAct<DecideInput, Prepared, ReturnType<typeof answerOf>>(
    (input, caller) => prepare(deps, input, caller),
    async (prepared, _caller, request) => answerOf(await storeDecision(deps, prepared, request)),
  )
}

const answerOf = (row: ChatRecommendationRow) => ({
  recommendation_id: row.recommendation_id,
  chat_id: row.chat_id,
  status: row.status as 'accepted' | 'declined',
  task_id: row.task_id,
  updated_at: row.updated_at.toISOString(),
})

async function prepare(deps: Deps, input: DecideInput, caller: Caller): Promise<Prepared> {
  const { db, clock } = deps
  const { chat_id, recommendation_id, status } = input
  const [row] = await query<ChatRecommendationRow>(
    db,
    'select * from chat_recommendation where recommendation_id = $1 and chat_id = $2 and user_id = $3',
    [recommendation_id, chat_id, caller.userId],
  )
  if (!row) throw notFound('recommendation in this chat', 'chat_thread')
  // Acceptance and refusal are final, so each needs the access that the operation itself needs.
  const access = deps.tools().get(row.operation)?.operation.entry.access
  if (access !== undefined && isScope(access)) assertScope(caller, access)
  if (row.status === status) return { row, status, taskId: row.task_id, isNew: false }
  if (row.status !== 'open') throw decided(row.status)
  // An earlier acceptance started the call, but the gateway was killed before it stored the decision.
  if (status === 'accepted' && (await isStarted(deps, row)))
    return { row, status, taskId: await start(deps, row, caller), isNew: true }
  await claim(deps, row)
  try {
    if (status === 'declined') {
      // An acceptance may have started the call before the gateway was killed; then a refusal comes too late.
      if (await isStarted(deps, row)) throw decided('accepted')
      return { row, status, taskId: null, isNew: true }
    }
    if (row.expires_at <= clock.now())
      throw new Fault('quote_expired', 'The recommendation has expired: ask again for a new one')
    return { row, status, taskId: await start(deps, row, caller), isNew: true }
  } catch (error) {
    await query(
      db,
      'update chat_recommendation set deciding_until = null where recommendation_id = $1 returning chat_id',
      [row.recommendation_id],
    )
    throw error
  }
}

const decided = (status: string): Fault =>
  new Fault('conflict', `The recommendation was ${status} before; the first decision is final`, {
    extras: { status },
  })

/** Lets one request at a time decide, across all instances. */
async function claim({ db, clock }: Deps, { recommendation_id }: ChatRecommendationRow): Promise<void> {
  const now = clock.now()
  const claimed = await query(
    db,
    `update chat_recommendation set deciding_until = $2 where recommendation_id = $1 and status = 'open'
       and (deciding_until is null or deciding_until < $3) returning chat_id`,
    [recommendation_id, later(now, decidingMs), now],
  )
  if (claimed.length === 0)
    throw new Fault('conflict', 'The recommendation is being decided; read it again in a moment', {
      extras: { status: 'open' },
    })
}

const isStarted = ({ db, keyOf }: Deps, row: ChatRecommendationRow): Promise<boolean> =>
  isKeyUsed(db, row.user_id, keyOf(keyOfCall(row.chat_id, row.call_id)))

/** Starts exactly the recommended call that was shown, with the access of the user. */
async function start(deps: Deps, row: ChatRecommendationRow, caller: Caller): Promise<string | null> {
  const { operation: name, input: stored, intent_sha256 } = row
  const input = stored as JsonObject
  const tool = deps.tools().get(name)
  if (!tool || callHash(name, input) !== intent_sha256)
    throw new Fault(
      'conflict',
      'The recommendation changed since it was shown, so it starts nothing: ask the chat again',
      { extras: { status: row.status } },
    )
  const answer = await deps.calls().call({
    operation: tool.operation,
    input,
    caller,
    key: deps.keyOf(keyOfCall(row.chat_id, row.call_id)),
    signal: AbortSignal.timeout(decidingMs / 2),
  })
  return isRecord(answer) && typeof answer.task_id === 'string' ? answer.task_id : null
}

/** Stores the decision, unless another request has stored the same decision meanwhile. */
async function storeDecision(
  { clock }: Deps,
  { row, status, taskId, isNew }: Prepared,
  request: RequestFacts,
): Promise<ChatRecommendationRow> {
  if (!isNew) return row
  const { tx } = toActScope(request)
  const [stored] = await query<ChatRecommendationRow>(
    tx,
    `update chat_recommendation set status = $2, task_id = $3, deciding_until = null, updated_at = $4
     where recommendation_id = $1 and status = 'open' returning *`,
    [row.recommendation_id, status, taskId, clock.now()],
  )
  if (stored) return stored
  const text = 'select * from chat_recommendation where recommendation_id = $1'
  const [now] = await query<ChatRecommendationRow>(tx, text, [row.recommendation_id])
  if (now?.status !== status) throw decided(now?.status ?? 'decided')
  return now
}
