import type pg from 'pg'
import type { Failpoints } from '#kernel/failpoint.ts'

type Callback = (error: Error | undefined, result: unknown) => void
type Query = (...args: unknown[]) => unknown

/** Labels `select * from task_step(...)` as `task_step`, and `update nonce_sequence set ...` by its first words. */
export function statementLabel(text: string): string {
  const flat = text.trim().toLowerCase()
  const call = /^select (?:\* from )?(\w+)\(/.exec(flat)?.[1]
  if (call) return call
  const [verb = '?'] = flat.split(/\s+/, 1)
  const table = /\b(?:update|into|from)\s+"?(\w+)"?/.exec(flat)?.[1]
  return table ? `${verb} ${table}` : verb
}

/** Puts two failpoints around every statement of a connection, so that a crash test needs no list of them. */
export function instrument(client: pg.ClientBase, failpoints: Failpoints): void {
  const query = client.query.bind(client) as Query
  const instrumented: Query = (...args) => {
    const [first] = args
    const label = statementLabel(
      typeof first === 'string' ? first : ((first as { text?: string })?.text ?? ''),
    )
    failpoints.pass(`db:${label}:before`)
    const last = args.at(-1)
    const after = () => failpoints.pass(`db:${label}:after`)
    if (typeof last === 'function') {
      const callback = last as Callback
      return query(...args.slice(0, -1), (error: Error | undefined, result: unknown) => {
        after()
        callback(error, result)
      })
    }
    const answer = query(...args)
    return answer instanceof Promise ? answer.finally(after) : answer
  }
  client.query = instrumented as typeof client.query
}
