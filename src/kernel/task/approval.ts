import { Fault } from '#kernel/contract/fault.ts'
import type { ApprovalDetail } from './act-approval-request.ts'
import type { ActionTerms, PlannedAction } from './policy-action.ts'

/**
 * Why a person has to decide: the value is above the limit for approvals, the recipient needs one, or the accepted loss
 * is above the default. `confirmation` is for an act that allows more than before, and not for a payment.
 */
export type ApprovalRule = 'approval_above_usd' | 'recipient_approval' | 'loss_bound' | 'confirmation'

/** The action is allowed only with a person's approval. A task waits for it; other operations throw this fault. */
export class ApprovalRequired extends Fault {
  readonly action: PlannedAction
  readonly rule: ApprovalRule

  constructor(action: PlannedAction, rule: ApprovalRule, reason: string) {
    super('approval_required', `A person has to approve this: ${reason}`, { extras: { rule, reason } })
    this.action = action
    this.rule = rule
  }
}

const textMax = 240
const figureMax = 80
const costMax = 280

export const noFurtherCost = 'Nothing on top: the gateway pays the network fee'

/**
 * Makes one detail for the person who approves. Its value becomes one bounded line, because anybody can choose a
 * name.
 */
export const approvalDetail = (name: string, value: string): ApprovalDetail => ({
  name,
  value: plain(value, costMax),
})

/** Makes one line without marks that change its direction or look, because anybody can name a token. */
const plain = (text: string, lengthMax: number): string => {
  const shown = text
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, '')
    .replace(/\p{M}{3,}/gu, '')
    .toWellFormed()
  return shown.length > lengthMax ? `${shown.slice(0, lengthMax - 1).toWellFormed()}…` : shown
}

/** Returns the terms of an action, each of bounded length; terms that are left out do not apply. */
export function actionTerms(text: string, figures: Partial<Omit<ActionTerms, 'text'>> = {}): ActionTerms {
  const { chain, token, amount, recipient, venue, asset, cost } = figures
  const figure = (value: string | null | undefined) => (value == null ? null : plain(value, figureMax))
  return {
    text: plain(text, textMax),
    chain: figure(chain),
    token: figure(token),
    amount: figure(amount),
    recipient: figure(recipient),
    venue: figure(venue),
    asset: figure(asset),
    cost: cost == null ? null : plain(cost, costMax),
  }
}
