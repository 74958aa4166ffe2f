import type { ApprovalRule } from '#kernel/task/approval.ts'
import { transferOperation } from '#kernel/task/policy-action.ts'
import {
  countedMicros,
  type Limits,
  type PolicyRequest,
  type PolicyState,
  type Refusal,
  recipientAt,
  refuse,
  usd,
} from './rules.ts'

type ApprovalState = Pick<PolicyState, 'effectiveRecipients'> & {
  limits: Pick<Limits, 'approvalAboveMicros'>
}
/**
 * Returns why a person has to approve a request that the policy otherwise allows; null if no approval is needed. An
 * exit counts 0 dollars, so its value never needs one.
 */
export function approvalNeeded(
  request: PolicyRequest,
  { limits: { approvalAboveMicros }, effectiveRecipients = [] }: ApprovalState,
): { rule: ApprovalRule; reason: string } | null {
  const { principal = 'agent', operation, chainId, recipients, acceptedLossBps, approvedMicros } = request
  if (principal === 'person' || principal === 'gateway') return null
  const isReserved = (address: string) => {
    const agents = recipientAt({ chainId, effectiveRecipients }, address)?.agents
    // A recipient with the setting `denied` is refused to an agent by the rules, whereas an app may ask its person for
    // an approval.
    return agents === 'approval' || (agents === 'denied' && principal === 'app')
  }
  if (operation === transferOperation && recipients.some(isReserved))
    return { rule: 'recipient_approval', reason: 'agents send to this recipient only with an approval' }
  // A trade at a great loss could give away the tokens of the wallet, within the caps.
  if (acceptedLossBps !== undefined)
    return {
      rule: 'loss_bound',
      reason: `agents accept a loss of ${acceptedLossBps / 100} % of the value only with an approval`,
    }
  const isFree = (limit: bigint | null | undefined) => limit != null && countedMicros(request) <= limit
  if (approvalAboveMicros === null || isFree(approvalAboveMicros) || isFree(approvedMicros)) return null
  return {
    rule: 'approval_above_usd',
    reason: `agents act above ${usd(approvalAboveMicros)} USD only with an approval`,
  }
}

type SignatureState = ApprovalState & {
  /**
   * `reservedMicros` is the value that the task was accepted with; `takenMicros` is that value, or the total that the
   * task will have signed if this is higher.
   */
  reservedMicros: bigint
  takenMicros: bigint
}
/**
 * The acceptance of a task has decided whether a person has to approve it. A signature is still refused if the
 * recipient of a transfer has come to need an approval since, or if a task that was accepted below the approval limit
 * would sign more than that limit.
 */
export function evaluateSignature(
  request: PolicyRequest,
  { reservedMicros, takenMicros, ...state }: SignatureState,
): Refusal | null {
  const need = approvalNeeded({ ...request, usdMicros: takenMicros }, state)
  if (need === null) return null
  if (need.rule === 'recipient_approval') return refuse('agent_transfer', need.reason)
  const { approvalAboveMicros: limit } = state.limits
  if (limit !== null && reservedMicros > limit) return null
  return refuse('approval_above_usd', need.reason, limit === null ? null : usd(limit))
}
