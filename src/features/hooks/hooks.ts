import type { EventLog } from '#durable/events/event-log.ts'
import { assertUncontested, personOf } from '#engines/agent-links/owners.ts'
import { entryPriceOf } from '#engines/cost-basis/store.ts'
import type { Pricer } from '#engines/trigger-orders/pricer.ts'
import { marketOf } from '#engines/trigger-orders/quote-key.ts'
import { expiryOf } from '#engines/trigger-orders/requested-expiry.ts'
import {
  assertOrderLimit,
  assertOrdersFit,
  insertTriggerOrders,
  type NewTriggerOrder,
  ordersById,
} from '#engines/trigger-orders/store.ts'
import type { SwapExecution } from '#engines/trigger-orders/swap-port.ts'
import { assertSide, type CheckedTpSl } from '#engines/trigger-orders/tp-sl.ts'
import type { Clock } from '#kernel/clock.ts'
import {
  type ActScope,
  type Asker,
  type Caller,
  type RequestFacts,
  toActScope,
} from '#kernel/contract/caller.ts'
import { exactlyOneOf, Fault, invalid, renameFields } from '#kernel/contract/fault.ts'
import { confirmedAct, implement, type Operation, preparedAct } from '#kernel/contract/operation.ts'
import { sellableToken, type TokenAt, type TokenFacts } from '#kernel/contract/token-ref.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { type Chain, sameAddress, type Token, toAssetId } from '#kernel/money/chains.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import type { ActRequests, RequestedAct } from '#kernel/task/act-approval-request.ts'
import { askPolicy } from '#kernel/task/admission.ts'
import { ApprovalRequired, approvalDetail } from '#kernel/task/approval.ts'
import { armedExecutionId } from '#kernel/task/execution-id.ts'
import { askerOf } from '#kernel/task/fresh-sign-in.ts'
import type { PlannedAction, Policy } from '#kernel/task/signer.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import { checkedTpSl } from './checked-tp-sl.ts'
import { contract, type HooksInput } from './contract.ts'
import { triggerRowOf } from './trigger-row.ts'
import { type HookInput, type HookRow, hookEvent, hookKind, hookView } from './view.ts'

/** A hook is a row that fires on executable quotes and sells the token into USDC. */

export type HooksDeps = {
  db: Queryable
  chains: readonly Chain[]
  tokenFacts: TokenFacts
  pricer: Pricer
  swaps: Pick<SwapExecution, 'available' | 'isExitLoss'>
  policy: Pick<Policy, 'check'>
  acts: ActRequests
  events: Pick<EventLog, 'add' | 'notify'>
  clock: Clock
  random: Random
}

/** `reserved` is set if a person has to confirm the loss that the hook accepts. */
type Prepared = {
  rows: NewTriggerOrder[]
  ids: string[]
  reserved?: ApprovalRequired | undefined
  chain: Chain
  token: Token
  expiresAt: Date | null
}

type Registered = Awaited<ReturnType<typeof register>> | RequestedAct

export const createHooks = (deps: HooksDeps): Operation[] =>
  implement(contract, {
    register: confirmedAct(
      preparedAct(
        async (input: HooksInput, caller: Caller) => ({
          input,
          prepared: await prepareHooks(deps, input, askerOf(caller)),
        }),
        ({ input, prepared }, caller: Caller, request: RequestFacts): Promise<Registered> =>
          prepared.reserved
            ? requestHooks(deps, { input, prepared }, caller, request)
            : register(deps, prepared, caller, { ...request, ...toActScope(request) }),
      ),
      async (input, _person, userId) => {
        const prepared = await prepareHooks(deps, input as HooksInput, { userId, principal: 'person' })
        return async (scope) => {
          const owner = await personOf(scope.tx, userId, { lock: true })
          assertUncontested(owner?.contestedAt ?? null)
          return register(deps, prepared, { userId }, scope)
        }
      },
    ),
  })

/** Asks the person to confirm hooks whose sale may lose more of its value than the default allows. */
async function requestHooks(
  { acts }: HooksDeps,
  { input, prepared }: { input: HooksInput; prepared: Prepared },
  caller: Caller,
  facts: RequestFacts,
) {
  const { chain, token, expiresAt, reserved } = prepared
  const percent = (input.max_price_impact_bps ?? 0) / 100
  const account = caller.person ? 'your account' : `the agent ${caller.agentId}`
  const act = {
    operation: 'hooks_register',
    input: { ...input, token_address: token.address } as JsonObject,
    text: `Leave an order that sells ${token.symbol} of ${account} with a loss of up to ${percent} % of its value`,
    details: [
      approvalDetail('Account', sentenceOf(account)),
      approvalDetail('Chain', chain.displayName),
      approvalDetail('Token', token.symbol),
      approvalDetail('Address of the token', token.address),
      ...checkedTpSl(input).map((leg) => approvalDetail(legNames[leg.type], legText(leg, input))),
      ...(input.oco === false
        ? [approvalDetail('Together', 'Each sells, also after another one has sold')]
        : []),
      approvalDetail('Slippage', `up to ${(input.slippage_bps ?? 100) / 100} %`),
      approvalDetail('Ends', expiresAt?.toISOString() ?? 'only when it has sold, or is cancelled'),
      approvalDetail('Accepts a loss of', `up to ${percent} % of the value`),
    ],
  }
  return acts.requestAct(toActScope(facts), act, caller).catch((error: unknown) => {
    // Without sign-in there is no person to confirm the loss.
    throw error instanceof Fault && error.code === 'step_up_required' ? reserved : error
  })
}

const sentenceOf = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`
const legNames = { stop_loss: 'Stop loss', take_profit: 'Take profit', trailing: 'Trailing stop' } as const

/** Returns a sentence that says when a leg of a hook sells, and which part of the balance. */
function legText({ type, fraction, price, sell }: CheckedTpSl, { reference }: HooksInput): string {
  const side = type === 'take_profit' ? 'above' : 'below'
  const from = reference === 'mark' ? 'what a sale would bring when you confirm it' : 'the average cost'
  const base = type === 'trailing' ? 'the highest price from then on' : from
  const trigger = price === null ? `at ${percentOf(fraction!)} % ${side} ${base}` : `at ${price} USD`
  return `Sells ${percentOf(sell)} % of the balance ${trigger}`
}
const percentOf = (fraction: string): string => fromFixedPoint(toFixedPoint(fraction) * 100n)

async function prepareHooks(
  deps: HooksDeps,
  input: HooksInput,
  { userId, principal }: Pick<Asker, 'userId' | 'principal'>,
): Promise<Prepared> {
  const { db, pricer, swaps, policy, clock, random } = deps
  const legs = checkedTpSl(input)
  const { chain, token } = await heldToken(deps, input)
  const expiresAt = expiryOf(input, clock.now())
  const asset = toAssetId(chain, token.address)
  const market = marketOf(chain, token.address)
  const { units: available } = await swaps.available(userId, { chainId: chain.id, address: token.address })
  if (available === 0n)
    throw insufficientBalance(
      { ...token, chainId: chain.id },
      { what: 'A hook', requiredUnits: 1n, availableUnits: 0n },
    )
  const isExit = swaps.isExitLoss(input.max_price_impact_bps)
  const facts = hookFacts({ chain, token }, isExit ? undefined : input.max_price_impact_bps)
  const [displayed, mark, asked] = await Promise.all([
    pricer.displayPrices([market]),
    pricer.sellPrice(asset, available, userId).catch((error: unknown) => {
      throw renameFields(error, saleFields(input))
    }),
    askPolicy(policy, { ...facts, userId, principal }),
    assertOrderLimit(db, userId, { added: legs.length }),
  ])
  if (!displayed.has(market))
    throw new Fault(
      'unavailable',
      `There is no trusted price of ${token.symbol} now, so a hook could not fire: try again later, or choose another token`,
    )
  const reference = await referenceOf(deps, { input, userId, chain, token, mark })
  const group = (input.oco ?? true) && legs.length > 1 ? uuidv7(clock.now(), random) : null
  const rows = legs.map((leg) => {
    assertSide(leg, mark)
    return triggerRowOf({
      id: uuidv7(clock.now(), random),
      userId,
      chain,
      token,
      leg,
      reference,
      referenceName: input.reference ?? 'entry',
      mark,
      slippageBps: input.slippage_bps ?? 100,
      maxImpactBps: input.max_price_impact_bps,
      group,
      expiresAt,
      units: available,
      isLot: false,
      at: clock.now(),
    })
  })
  const reserved = asked instanceof ApprovalRequired ? asked : undefined
  return { rows, ids: rows.map(({ id }) => id), reserved, chain, token, expiresAt }
}

/** Returns the facts of the hook's later sale for the policy: a sale that is refused now would not execute then. */
const hookFacts = (
  { chain, token }: Pick<TokenAt, 'chain' | 'token'>,
  acceptedLossBps: number | undefined,
): Omit<PlannedAction, 'userId'> => ({
  operation: hookKind,
  chainId: chain.id,
  tokens: [token.address, chain.usdc],
  recipients: [],
  usdMicros: 0n,
  exit: acceptedLossBps === undefined,
  ...(acceptedLossBps !== undefined && { acceptedLossBps }),
})

function saleFields({ chain }: HooksInput) {
  const chainField = chain === undefined ? 'chain_id' : 'chain'
  return {
    chain_id_in: chainField,
    chain_id_out: chainField,
    token_in: 'token_address',
    token_out: 'token_address',
    amount: 'token_address',
  }
}

async function heldToken({ chains, tokenFacts }: HooksDeps, input: HooksInput) {
  if ((input.chain_id === undefined) === (input.chain === undefined))
    throw exactlyOneOf('chain_id', 'chain', { hasBoth: input.chain !== undefined })
  const { chain, token } = await sellableToken(
    { group: 'Hooks', chains, tokenFacts },
    {
      chain: (input.chain_id ?? input.chain)!,
      chainField: input.chain_id === undefined ? 'chain' : 'chain_id',
      token: input.token_address,
      field: 'token_address',
    },
  )
  if (sameAddress(chain, token.address, chain.usdc))
    throw invalid(
      'token_address',
      'unsupported_asset',
      'Input should be another token than USDC, which hooks buy',
    )
  return { chain, token }
}

type Held = { input: HooksInput; userId: string; chain: Chain; token: Token; mark: string }

async function referenceOf({ db }: HooksDeps, { input, userId, chain, token, mark }: Held): Promise<string> {
  if (input.reference === 'mark') return mark
  const entry = await entryPriceOf(db, userId, {
    chainId: chain.id,
    address: token.address,
    decimals: token.decimals,
  })
  if (entry !== undefined) return entry
  const needsEntry = checkedTpSl(input).some(({ type, fraction }) => type !== 'trailing' && fraction !== null)
  if (!needsEntry) return mark
  throw new Fault(
    'entry_unknown',
    `There is no purchase of ${token.symbol} with this gateway to count from: send \`reference: mark\`, or prices`,
    { extras: { token: token.address } },
  )
}

async function register(
  { events, clock }: HooksDeps,
  { rows, ids }: Prepared,
  { userId }: Pick<Caller, 'userId'>,
  { tx, afterCommit, executionId }: ActScope & Pick<RequestFacts, 'executionId'>,
) {
  const named = rows.map((row, at) =>
    executionId === undefined ? row : { ...row, execution_id: armedExecutionId(executionId, String(at)) },
  )
  const created = await insertHooks(tx, userId, { rows: named, ids })
  await assertOrdersFit(tx, userId, clock.now())
  await events.add(tx, userId, created.map(hookEvent))
  afterCommit(() => events.notify(userId))
  const views = created.map((row) => hookView(row, clock.now()))
  return { status: 'active' as const, message: `${views.length} hooks wait for their price`, hooks: views }
}

async function insertHooks(
  tx: Tx,
  userId: string,
  { rows, ids }: Pick<Prepared, 'rows' | 'ids'>,
): Promise<HookRow[]> {
  await insertTriggerOrders(tx, rows)
  const found = await ordersById<HookInput & JsonObject>(tx, userId, ids)
  return ids.flatMap((id) => found.find((row) => row.id === id) ?? [])
}
