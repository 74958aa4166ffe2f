import { Fault } from '#kernel/contract/fault.ts'
import type { SignInAction, VenueWallet, WalletCall } from '#kernel/money/prediction-actions.ts'
import type { ChainReader, SetupStep } from '#kernel/money/prediction-setup.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import { createEffect, notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { StepContext, Steps } from '#kernel/task/task.ts'
import type { SetupStatusView } from './account-contract.ts'
import type { PredmktDeps } from './deps.ts'
import { type RelayPlan, relayDriver } from './relay-action.ts'
import { migrationEffect } from './safe-migration.ts'
import {
  partialOnceMoved,
  type SetupResult,
  type SetupStepName,
  type SetupTask,
  type SetupTaskData,
} from './setup-task.ts'
import { bodyOfEffect, latestEffect, signEffect } from './signed-effect.ts'
import { scheduleSync, setReady } from './store/account-store.ts'

/** The set-up reads what the venue and the chain lack, does that, and reads again until nothing is missing. */

type Result = SetupResult
export type SetupDeps = PredmktDeps & { status: (userId: string) => Promise<SetupStatusView> }

const factsOf = (operation: string) => ({
  operation,
  tokens: [],
  recipients: [],
  usdMicros: 0n,
  exit: false,
})
/** The operation that also moves what lies in a wallet of an earlier kind. */
const migrationKind = 'predmkt_setup_v2'
/** The venue takes the signature of a sign-in only while it is young. */
const signInMaxMs = 60_000
const pollBackoff = { firstMs: 500, maxMs: 8_000 }

export const chainReader = ({ chain }: Pick<PredmktDeps, 'chain'>): ChainReader => ({
  code: (address) => chain.code(address),
  async call(calls) {
    const { results } = await chain.views(calls)
    return results.map(({ success, data }) => (success ? data : null))
  },
})

export async function setupStepsOf(
  deps: Pick<PredmktDeps, 'venue' | 'chain' | 'keys'>,
  userId: string,
  wallet: VenueWallet,
): Promise<SetupStep[]> {
  const { venue, keys } = deps
  if (!venue.setup)
    throw new Fault('unavailable', 'The operator has not configured the set-up of prediction markets')
  const credentials = await keys.of(userId)
  const hasKey = credentials !== undefined && (await isKnownKey(venue, credentials))
  return venue.setup.steps(wallet, { hasKey, protocols: venue.protocols, reader: chainReader(deps) })
}

/** Whether the venue takes the key. Only its own refusal says that it does not. */
const isKnownKey = (
  { keys }: Pick<PredmktDeps['venue'], 'keys'>,
  credentials: VenueCredentials,
): Promise<boolean> =>
  keys(credentials).then(
    (known) => known.includes(credentials.key),
    (fault: unknown) => {
      if (!(fault instanceof Fault)) throw fault
      return fault.extras.reason !== 'key_invalid'
    },
  )

/** The protocols whose steps are all done; a step without a protocol belongs to each. */
export const readyProtocols = (steps: readonly SetupStep[], protocols: readonly string[]): string[] =>
  protocols.filter((protocol) =>
    steps.every((step) => step.isDone || (step.protocol !== null && step.protocol !== protocol)),
  )

export function setupSteps(deps: SetupDeps): Steps<SetupTaskData, SetupStepName> {
  const relayed = relayEffect(deps)
  const migration = migrationEffect(deps)
  return {
    check: onceMoved((task, context) => checkSetup(deps, task, context)),
    sign_in: onceMoved((task, context) => signIn(deps, task, context)),
    open_key: onceMoved((task, context) => openKey(deps, task, context)),
    sign: onceMoved(relayed.sign),
    confirm: onceMoved(relayed.confirm),
    move: onceMoved(migration.sign),
    moved: onceMoved(migration.confirm),
  }
}

type Step = (task: SetupTask, context: StepContext) => Promise<Result>
const onceMoved =
  (step: Step): Step =>
  async (task, context) => {
    const result = await step(task, context)
    if (!('sign' in result) || !result.sign.onRefused) return partialOnceMoved(task, result)
    const { onRefused } = result.sign
    return {
      ...result,
      sign: { ...result.sign, onRefused: (fault) => partialOnceMoved(task, onRefused(fault)) },
    }
  }

async function checkSetup(
  { venue, status, ...deps }: SetupDeps,
  task: SetupTask,
  { now }: StepContext,
): Promise<Result> {
  const { userId, data } = task
  const steps = await setupStepsOf({ venue, ...deps }, userId, data.wallet)
  const missing = steps.find(({ isDone }) => !isDone)
  const done = steps.filter(({ isDone }) => isDone).length
  const progress = {
    step: Math.min(done + 1, steps.length),
    of: steps.length,
    text: missing?.label ?? 'Set up',
  }
  if (missing) return { next: missing.act.type === 'sign_in' ? 'sign_in' : 'sign', data: { progress } }
  if (task.kind === migrationKind && data.is_moved !== true) return { next: 'move', data: { progress } }
  const { left = [] } = data
  const result = {
    ...(await status(userId)),
    setup_complete: true,
    ...(left.length > 0 && { left_in_safe: left }),
  }
  return {
    end: 'completed',
    outcome: 'executed',
    result,
    data: { progress },
    writes: (tx) =>
      setReady(tx, { userId, venue: venue.name, protocols: readyProtocols(steps, venue.protocols), now }),
  }
}

function signIn(deps: SetupDeps, task: SetupTask, { now }: StepContext): Promise<Result> {
  const { wallet } = task.data
  const action = deps.venue.signInAction(wallet.owner)
  return signEffect<SetupTaskData, SetupStepName>(
    deps,
    task,
    {
      kind: 'prediction_sign_in',
      externalId: `${task.id}:${task.effects.length}`,
      account: wallet.owner,
      action,
      facts: factsOf(task.kind),
      bodyOf: (signature) =>
        JSON.stringify({ action: { ...action, nonce: String(action.nonce) }, signature }),
    },
    {
      now,
      next: 'open_key',
      data: { polls: 0 },
      onRefused: ({ code, message, retryable }) => notExecuted({ code, message, retryable }),
    },
  )
}

/** Opens the key; the venue finds the one that exists, so that a repeat opens no second one. */
async function openKey({ venue, keys }: SetupDeps, task: SetupTask, { now }: StepContext): Promise<Result> {
  const effect = latestEffect(task, 'prediction_sign_in')
  const isOld = !effect || now.getTime() - effect.at.getTime() > signInMaxMs
  if (isOld) return { next: 'sign_in', effects: effect ? [{ effectId: effect.id, status: 'dropped' }] : [] }
  const stored = JSON.parse(bodyOfEffect(effect)) as {
    action: Omit<SignInAction, 'nonce'> & { nonce: string }
    signature: string
  }
  const action = { ...stored.action, nonce: BigInt(stored.action.nonce) }
  let credentials: VenueCredentials
  try {
    credentials = await venue.signIn(action, stored.signature)
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    if (fault.retryable) return { ...pollAgain(task, 'open_key', pollBackoff), state: 'confirming' }
    const { code, message } = fault
    return {
      ...notExecuted({ code, message, retryable: false, upstream: venue.name }),
      effects: [{ effectId: effect.id, status: 'rejected' }],
    }
  }
  const sealed = await keys.seal(task.userId, credentials)
  return {
    next: 'check',
    state: 'held',
    effects: [{ effectId: effect.id, status: 'confirmed' }],
    // Without a key nothing was compared, so what happened meanwhile is read now.
    async writes(tx) {
      await keys.add(tx, sealed)
      await scheduleSync(tx, { userId: task.userId, venue: venue.name }, now)
    },
  }
}

const relayEffect = (deps: SetupDeps) =>
  createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: relayDriver<SetupTaskData, SetupStepName>(deps, {
      // The relayer may say confirmed before the chain has the code or the approvals.
      async prove({ userId, data }) {
        const steps = await setupStepsOf(deps, userId, data.wallet)
        return (data.doing ?? []).every((key) => steps.find((step) => step.key === key)?.isDone === true)
      },
    }),
    async plan(task): Promise<RelayPlan<SetupTaskData> | Result> {
      const steps = await setupStepsOf(deps, task.userId, task.data.wallet)
      const missing = steps.filter(({ isDone }) => !isDone)
      const first = missing[0]
      if (!first || first.act.type === 'sign_in') return { next: 'check' }
      if (first.act.type === 'create_wallet')
        return doing({ calls: null, facts: factsOf(task.kind) }, [first])
      const batch = missing.filter(({ act }) => act.type === 'wallet_calls')
      const calls: WalletCall[] = batch.flatMap(({ act }) => (act.type === 'wallet_calls' ? act.calls : []))
      return doing({ calls, facts: factsOf(task.kind) }, batch)
    },
    settle: () => ({ next: 'check', state: 'held', data: { polls: 0, progress: null } }),
  })

const doing = (plan: RelayPlan<SetupTaskData>, steps: readonly SetupStep[]): RelayPlan<SetupTaskData> => ({
  ...plan,
  data: { doing: steps.map(({ key }) => key) },
})
