import { acceptsGzip, type GzipPart, gzipOf, gzipPart } from '#invoke/gzip.ts'
import { isRecord } from '#kernel/wire/json.ts'

/**
 * The list of tools is by far the longest MCP answer. The protocol library therefore writes a list with this
 * placeholder as its only entry. The text of all tools, which is built once for each set of scopes, then replaces the
 * placeholder.
 */
export const allTools = { name: 'all_tools', inputSchema: { type: 'object' as const } }
const entry = JSON.stringify(allTools)

/** Returns whether a body asks for the list of tools alone; the library itself writes a list within a batch. */
export const isToolList = (body: unknown): boolean => isRecord(body) && body.method === 'tools/list'

export async function withTools(
  response: Response,
  tools: GzipPart,
  encodings: string | string[] | undefined,
): Promise<Response> {
  const text = await response.text()
  const at = text.indexOf(entry)
  if (at < 0) return new Response(text, response)
  // In former revisions the answer is the only event of a stream, on one line; JSON has no line break.
  const start = text.lastIndexOf('\n', at) + 1
  const end = text.indexOf('\n', at)
  const before = text.slice(start, at).replace(/^data: /, '')
  const after = text.slice(at + entry.length, end < 0 ? undefined : end)
  const headers = { 'content-type': 'application/json', vary: 'Accept-Encoding' }
  if (acceptsGzip(encodings)) {
    const body = gzipOf([gzipPart(before), tools, gzipPart(after)])
    return new Response(body, { headers: { ...headers, 'content-encoding': 'gzip' } })
  }
  return new Response(Buffer.concat([Buffer.from(before), tools.bytes, Buffer.from(after)]), { headers })
}
