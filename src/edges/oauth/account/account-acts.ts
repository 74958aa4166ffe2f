import type { FastifyRequest } from 'fastify'
import type { Form } from '#edges/oauth/provider/request-bodies.ts'
import type { PageSession } from '#edges/oauth/sign-in/page-session.ts'
import { Fault, type FaultCode } from '#kernel/contract/fault.ts'

export const notices = {
  stopped: 'Trading is stopped.',
  resumed: 'Trading is not stopped.',
  cancelled: 'The change is cancelled.',
  removed: 'The recipient is removed.',
  webhook: 'The webhook is removed.',
  again: 'You were signed in again first, so nothing was changed. Press it once more.',
}
export type Notice = keyof typeof notices
export const isNotice = (text: unknown): text is Notice =>
  typeof text === 'string' && Object.hasOwn(notices, text)

/** `view` is the part of the account page that the browser is sent to after the act. */
export type ActResult =
  | { notice: Notice; view: string }
  /** The act waits on the page of this approval until the person has confirmed it. */
  | { approvalId: string }
  | { asksForSignIn: boolean; status: number; error: string }
export type AccountAct = {
  viewOf(form: Form): string
  run(request: FastifyRequest, form: Form): Promise<ActResult>
}

type Act = {
  operation: string
  fields(form: Form): Record<string, unknown>
  notice: Notice
  viewOf(form: Form): string
  sentences?: Partial<Record<FaultCode, string>>
}

const ofAgent = ({ agent_id: agentId = '' }: Form): string => (agentId === '' ? '' : `agents/${agentId}`)
const forAgent = ({ agent_id: agentId = '' }: Form) => (agentId === '' ? {} : { for_agent: agentId })
const own = () => ''
const gone = 'It is gone already.'

const acts: Record<string, Act> = {
  stop: {
    operation: 'policy_kill',
    fields: (form) => ({ on: true, ...forAgent(form) }),
    notice: 'stopped',
    viewOf: ofAgent,
  },
  resume: {
    operation: 'policy_kill',
    fields: (form) => ({ on: false, ...forAgent(form) }),
    notice: 'resumed',
    viewOf: ofAgent,
    sentences: {
      conflict:
        'This agent was linked a short time ago: until that time is over, you can lift only a switch that you have set yourself.',
    },
  },
  'limit-cancel': {
    operation: 'policy_cancel_change',
    fields: (form) => ({ change_id: form.change_id ?? '', ...forAgent(form) }),
    notice: 'cancelled',
    viewOf: ofAgent,
    sentences: { not_found: 'This change is in effect, or was cancelled before.' },
  },
  'recipient-remove': {
    operation: 'recipients_remove',
    fields: (form) => ({ recipient_id: form.recipient_id ?? '', ...forAgent(form) }),
    notice: 'removed',
    viewOf: ofAgent,
    sentences: { not_found: gone },
  },
  'agent-link': {
    operation: 'agents_link',
    fields: ({ code = '', name = '' }) => ({ code: code.trim(), ...(name.trim() && { name: name.trim() }) }),
    notice: 'again',
    viewOf: () => 'link',
    sentences: {
      not_found: 'This code is wrong, or it has expired. Let the agent show you a new one.',
      validation: 'A code has twelve letters and digits. Check it, and the name.',
      conflict: 'The agent is linked already, or you have as many agents as a person may have.',
      rate_limited: 'Too many wrong codes. Wait 15 minutes and try again.',
    },
  },
  'agent-unlink': {
    operation: 'agents_unlink',
    fields: ({ agent_id = '' }) => ({ agent_id }),
    notice: 'again',
    viewOf: own,
    sentences: { not_found: 'This agent is not linked to you any more.' },
  },
  'webhook-remove': {
    operation: 'webhooks_delete',
    fields: ({ webhook_id = '' }) => ({ webhook_id }),
    notice: 'webhook',
    viewOf: own,
    sentences: { not_found: gone },
  },
}

export function createAccountActs(session: PageSession) {
  const known = new Map(
    Object.entries(acts).map(([step, act]): [string, AccountAct] => {
      const invocable = session.operation(act.operation)
      const run = async (request: FastifyRequest, form: Form): Promise<ActResult> => {
        try {
          const { body } = await session.call(invocable, request, act.fields(form))
          const { approval } = body as { approval?: { approval_id: string } }
          if (approval) return { approvalId: approval.approval_id }
          return { notice: act.notice, view: act.viewOf(form) }
        } catch (error) {
          if (!(error instanceof Fault)) throw error
          const { code, status, message } = error
          const asksForSignIn = ['step_up_required', 'invalid_token', 'unauthorized'].includes(code)
          return { asksForSignIn, status, error: act.sentences?.[code] ?? message }
        }
      }
      return [step, { viewOf: act.viewOf, run }]
    }),
  )
  return { find: (step: string): AccountAct | undefined => known.get(step) }
}
