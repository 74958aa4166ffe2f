/** The HTTP request of an operation, from its parts. */
import type { KnownOperation } from './contracts.ts'
import type { HttpRequest } from './http-client.ts'
import { type MinimalRequest, pathOf } from './minimal-request.ts'

export function requestOf(
  { entry }: KnownOperation,
  parts: MinimalRequest,
  authorization: string | undefined,
): HttpRequest {
  const hasBody = parts.body !== undefined
  return {
    method: entry.method,
    path: pathOf(entry, parts),
    headers: {
      ...(authorization !== undefined && { authorization }),
      ...(hasBody && { 'content-type': 'application/json' }),
    },
    ...(hasBody && { body: JSON.stringify(parts.body) }),
  }
}
