import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** The queue of the service: a request is taken at once, and its status, result and end are asked for. */

export type Result = { status: number; body: unknown }
export type Request = { incoming: IncomingMessage; answer: ServerResponse; body: Buffer; origin: string }
type Queued = { app: string; result: Result | undefined; isCancelled: boolean; position: number }
type Run = (app: string, body: Buffer, origin: string) => Promise<Result>

const queuedMax = 200
/** Owner and name: the path below them is no part of the address of a request. */
const appParts = 2
const idHeader = 'x-fal-request-id'

export const createQueue = (run: Run) => {
  const queue = new Map<string, Queued>()

  const enqueue = async (app: string, { body, origin, answer }: Request): Promise<void> => {
    const id = randomUUID()
    const waiting = [...queue.values()].filter(({ result }) => !result).length
    const queued: Queued = { app, result: undefined, isCancelled: false, position: waiting }
    queue.set(id, queued)
    const oldest = queue.keys().next().value
    if (queue.size > queuedMax && oldest !== undefined) queue.delete(oldest)
    void run(app, body, origin).then(
      (result) => {
        queued.result = result
      },
      () => {
        queued.result = { status: 500, body: { detail: 'Internal Server Error' } }
      },
    )
    const base = `${origin}/queue/${app.split('/').slice(0, appParts).join('/')}/requests/${id}`
    send(
      answer,
      200,
      {
        status: 'IN_QUEUE',
        request_id: id,
        queue_position: waiting,
        response_url: base,
        status_url: `${base}/status`,
        cancel_url: `${base}/cancel`,
      },
      id,
    )
  }

  const answerQueue = (path: string, { incoming, answer, origin }: Request): boolean => {
    const [, app, id = '', verb] =
      /^([\w.-]+\/[\w.-]+)\/requests\/([\w-]+)(?:\/(status|cancel|response))?$/.exec(path) ?? []
    if (app === undefined) return false
    const queued = queue.get(id)
    const method = incoming.method ?? 'GET'
    if (!queued?.app.startsWith(app)) send(answer, 404, { detail: 'Request not found' })
    else if (verb === 'status' && method === 'GET')
      send(
        answer,
        queued.result ? 200 : 202,
        statusOf(queued, `${origin}/queue/${app}/requests/${id}`, id),
        id,
      )
    else if (verb === 'cancel' && method === 'PUT') {
      const isOver = queued.result !== undefined
      queued.isCancelled ||= !isOver
      send(
        answer,
        isOver ? 400 : 202,
        { status: isOver ? 'ALREADY_COMPLETED' : 'CANCELLATION_REQUESTED' },
        id,
      )
    } else if (verb !== 'cancel' && verb !== 'status' && method === 'GET') {
      if (queued.isCancelled) send(answer, 400, { detail: 'Request was cancelled' }, id)
      else if (queued.result) send(answer, queued.result.status, queued.result.body, id)
      else send(answer, 400, { detail: 'Request is still in progress' }, id)
    } else send(answer, 405, { detail: 'Method Not Allowed' })
    return true
  }

  return { enqueue, answerQueue }
}

const statusOf = ({ result, position }: Queued, base: string, id: string) => ({
  status: result ? 'COMPLETED' : position > 0 ? 'IN_QUEUE' : 'IN_PROGRESS',
  request_id: id,
  ...(result ? {} : { queue_position: position }),
  response_url: base,
  status_url: `${base}/status`,
  cancel_url: `${base}/cancel`,
  logs: [],
  metrics: {},
})

export const send = (answer: ServerResponse, status: number, body: unknown, id?: string): void => {
  const text = JSON.stringify(body)
  answer.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...(id !== undefined && { [idHeader]: id }),
  })
  answer.end(text)
}
