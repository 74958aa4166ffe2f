/** Calls whose loosening part the person confirms on the page that the answer names. */
import { faults } from '#kernel/contract/fault.ts'
import { type Answer, eventually, http } from '../harness/gateway.ts'
import type { ConnectingPerson } from './session.ts'

type Json = Record<string, unknown>
type Waiting = {
  task_id: string
  approval?: { confirm_url: string }
  confirmation?: { task_id: string; confirm_url: string }
}
const acts = new Set([
  'policy_tighten',
  'policy_kill',
  'recipients_add',
  'agents_link',
  'agents_unlink',
  'hooks_register',
])
type Task = {
  kind: string
  status: string
  result: Json | null
  error: { code: keyof typeof faults; message: string } | null
}

/** The same answer, or that of the act once the person has confirmed it. One at a time, as in one browser. */
export function confirming(person: Pick<ConnectingPerson, 'confirm'>, base: string, authorization: string) {
  let last: Promise<unknown> = Promise.resolve()
  const taskOf = async (taskId: string): Promise<Task | undefined> => {
    const { body } = await http<Task>(`${base}/v1/tasks/${taskId}`, { headers: { authorization } })
    return body.status === 'pending' || body.status === 'running' ? undefined : body
  }
  const confirm = async <B>(answer: Answer<B>, readTask: typeof taskOf): Promise<Answer<B>> => {
    const { approval, confirmation, task_id } = answer.body as Waiting
    const url = (confirmation ?? approval)?.confirm_url
    if (answer.status !== 200 || !url) return answer
    const page = await person.confirm(url).catch((error: Error) => {
      if (/no form for approve/.test(error.message)) return undefined
      throw error
    })
    if (!page || /Nothing was changed/.test(page.html))
      return refused(answer, 'not_found', 'it waits no more')
    const taskId = confirmation?.task_id ?? task_id
    const task = await eventually(() => readTask(taskId), `the act ${taskId} has ended`, 20_000)
    if (task.error) return refused(answer, task.error.code, task.error.message)
    return { ...answer, body: acts.has(task.kind) ? { ...(task.result as B) } : (task as B) }
  }
  return <B>(answer: Answer<B>, readTask = taskOf): Promise<Answer<B>> => {
    const next = last.then(() => confirm(answer, readTask))
    last = next.catch(() => {})
    return next
  }
}

const refused = <B>(answer: Answer<B>, code: keyof typeof faults, message: string): Answer<B> => ({
  ...answer,
  status: faults[code].status,
  body: { ...answer.body, code, message },
})
