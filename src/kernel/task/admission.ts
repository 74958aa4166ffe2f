import type { Asker, ScheduleRun } from '#kernel/contract/caller.ts'
import { ApprovalRequired } from './approval.ts'
import type { PlannedAction, Policy, PolicyGrant } from './signer.ts'
import type { Admission, Spend } from './task.ts'

/**
 * The admission of every operation that moves money, always in this order: input and readiness, policy, balance,
 * and the reservations of the acceptance. An operation fills in the parts; `createAdmission` calls them.
 */

/** `isLast` is true if no further read follows. Spends that the read may not show yet then count as spent. */
export type BalanceAttempt = { isLast: boolean }
export type Attempt = BalanceAttempt & AttemptAsker
type AttemptAsker = Pick<Asker, 'userId' | 'principal' | 'executionId' | 'run'>

export type AdmissionParts<Input, Request extends { action: PlannedAction }, Funds, Start> = {
  policy: Pick<Policy, 'check'>
  /** Part 1 checks the input, reads what the operation needs, and refuses an account that is not set up. */
  check(input: Input, attempt: Attempt): Promise<Request>
  /**
   * Part 2 asks the policy. `first` asks before the balance is read. `on_shortage`, the default, asks only if
   * `fund` rejects, so that a denial wins over a shortage; otherwise the policy is checked right before the
   * acceptance.
   */
  asksPolicy?: 'first' | 'on_shortage'
  /** Part 3 finds the funds, and throws if they do not suffice. */
  fund?(request: Request, attempt: Attempt): Promise<Funds>
  /**
   * Repeats parts 1 to 3 if an older read may be the cause of a shortage; without `reread` these parts run once.
   */
  reread?: <Result>(userId: string, admit: (attempt: BalanceAttempt) => Promise<Result>) => Promise<Result>
  /** Part 4 makes the task, and what its acceptance reserves beyond the policy's caps. */
  start(request: Request, funds: Funds, attempt: Attempt): Start
}

export type TaskStart<Data, First extends string> = Pick<
  Admission<Data, First>,
  'data' | 'first' | 'deadlineMs' | 'signOnAccept' | 'rows' | 'orders'
> & {
  spend?: Omit<Spend, 'action'>
}

export const createAdmission =
  <Input, Request extends { action: PlannedAction }, Funds, Data, First extends string>({
    policy,
    check,
    asksPolicy = 'on_shortage',
    fund,
    reread,
    start,
  }: AdmissionParts<Input, Request, Funds, TaskStart<Data, First>>) =>
  (input: Input, { userId, principal, executionId, run }: AttemptAsker): Promise<Admission<Data, First>> => {
    const admit = async ({ isLast }: BalanceAttempt): Promise<Admission<Data, First>> => {
      const attempt = {
        userId,
        principal,
        isLast,
        ...(executionId !== undefined && { executionId }),
        ...(run && { run }),
      }
      const checked = await check(input, attempt)
      const action: PlannedAction = { ...checked.action, principal, ...(run && termsOf(run)) }
      const request = { ...checked, action }
      const asked = asksPolicy === 'first' ? await askPolicy(policy, action) : undefined
      const funds = await fund?.(request, attempt).catch(async (refusal: unknown) => {
        if (asksPolicy === 'on_shortage') await askPolicy(policy, action)
        throw refusal
      })
      if (asked instanceof ApprovalRequired) throw asked
      return toAdmission(policy, start(request, funds as Funds, attempt), { action, grant: asked })
    }
    return reread ? reread(userId, admit) : admit({ isLast: true })
  }

/** Returns what the policy has to know of the run that asks. */
const termsOf = ({
  schedule: scheduleId,
  approvedMicros,
  budgetMicros,
}: ScheduleRun): Pick<PlannedAction, 'approvedMicros' | 'budget'> => ({
  approvedMicros,
  ...(budgetMicros !== undefined && { budget: { scheduleId, micros: budgetMicros } }),
})

/**
 * Asks the policy, and returns the need for an approval instead of throwing it: a person is asked only if the funds
 * suffice.
 */
export const askPolicy = (policy: Pick<Policy, 'check'>, action: PlannedAction) =>
  policy.check(action).catch((error: unknown) => {
    if (error instanceof ApprovalRequired) return error
    throw error
  })

function toAdmission<Data, First extends string>(
  policy: Pick<Policy, 'check'>,
  { spend, ...task }: TaskStart<Data, First>,
  { action, grant }: { action: PlannedAction; grant: PolicyGrant | undefined },
): Admission<Data, First> {
  return {
    ...task,
    spend: {
      ...spend,
      ...(grant && { grant }),
      action,
      check: () => policy.check(action),
    },
  }
}
