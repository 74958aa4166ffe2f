/** The tools of MCP as a door: an operation by its name, one flat record, a credential. */
import assert from 'node:assert/strict'
import type { FaultView } from '#invoke/fault-view.ts'
import { hasTask, isGuarded, type Operation } from '#kernel/contract/operation.ts'
import type { Door, DoorReply } from '../harness/in-process-door.ts'
import type { ToolReply } from './clients.ts'

type Fields = Record<string, unknown>

export function mcpDoor(operations: readonly Pick<Operation, 'name' | 'entry'>[], url: string): Door {
  const entries = new Map(operations.map(({ name, entry }) => [name, entry]))
  let id = 0
  return async (name, input, { authorization, key, itemsMax } = {}) => {
    const entry = entries.get(name)
    const given = {
      ...input,
      ...(key !== undefined && { idempotency_key: key }),
      // A journey repeats its requests on purpose.
      ...(entry && isGuarded(entry) && { confirm_repeat: true }),
      ...(entry?.kind === 'stream' && !hasTask(entry) && { max_items: itemsMax ?? 1 }),
    }
    const reply = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(authorization !== undefined && { authorization }),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: ++id,
        method: 'tools/call',
        params: { name, arguments: given },
      }),
    })
    const text = await reply.text()
    if (reply.status !== 200) return refusal(reply.status, JSON.parse(text) as Fields)
    const { result } = messageOf(text)
    assert.ok(result, text)
    return toReply(result)
  }
}

/** One JSON body, or the only event of a stream. */
function messageOf(text: string): { result?: ToolReply } {
  const data = /^data: (\{.*)$/m.exec(text)?.[1] ?? text
  return JSON.parse(data) as { result?: ToolReply }
}

const refusal = (
  status: number,
  { detail, code, retryable, request_id: _, ...extras }: Fields,
): DoorReply => ({
  status,
  fault: { status, code, message: detail, retryable, extras, issues: [] } as unknown as FaultView,
})

type ToolError = Omit<FaultView, 'extras' | 'issues'> & {
  details?: Fields
  issues?: (FaultView['issues'][number] & { field: string })[]
}

function toReply({ content, structuredContent, isError, _meta: meta }: ToolReply): DoorReply {
  const body = JSON.parse(content[0]?.text ?? 'null') as Fields
  if (isError) {
    const { details = {}, issues = [], ...error } = body.error as ToolError
    const shown = issues.map(({ field, ...issue }) => {
      assert.equal(field, issue.path.join('.'))
      return issue
    })
    return { status: error.status, fault: { ...error, extras: details, issues: shown } }
  }
  if (structuredContent) assert.deepEqual(structuredContent, body)
  const isItems = Object.keys(body).join() === 'items' && !structuredContent
  return {
    status: 200,
    result: isItems ? body.items : body,
    replayed: meta?.['portico/replayed'] === true,
    key: meta?.['portico/idempotency_key'] as string | undefined,
  }
}
