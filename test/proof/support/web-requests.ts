/** Requests that try to be dear, to the routes that are in no contract: OAuth, the sign-up, MCP and provider events. */

export type WebRequest = { name: string; path: string; init: RequestInit }

type Bodies = Readonly<Record<string, (bytes: number) => string>>
const form = 'application/x-www-form-urlencoded'
const sizes = [1_000, 8_000, 60_000]
const listOf = (count: number, item: (at: number) => string) =>
  Array.from({ length: Math.floor(count) }, (_, at) => item(at))

const formBodies: Bodies = {
  'one long field': (bytes) => `code=${'x'.repeat(bytes)}`,
  'many fields': (bytes) => 'a=1&'.repeat(bytes / 4),
  'many names': (bytes) => listOf(bytes / 8, (at) => `k${at}=1`).join('&'),
  escapes: (bytes) => `token=${'%u'.repeat(bytes / 2)}`,
  'a token of many dots': (bytes) => `token=${'eyJ.'.repeat(bytes / 4)}&client_id=${'é'.repeat(bytes / 8)}`,
  'a nested name': (bytes) => `${'a['.repeat(bytes / 2)}=1`,
}
const jsonBodies: Bodies = {
  'many redirects': (bytes) =>
    JSON.stringify({ redirect_uris: listOf(bytes / 24, (at) => `https://a.example/${at}`) }),
  'one long name': (bytes) =>
    JSON.stringify({ client_name: 'x'.repeat(bytes), redirect_uris: ['https://a.example/'] }),
  'deep lists': (bytes) => `{"redirect_uris":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}}`,
  'many members': (bytes) => `{${listOf(bytes / 12, (at) => `"k${at}":1`).join(',')}}`,
}
const toolCall = (args: string, name = 'tasks_list') =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`
const rpcBodies: Bodies = {
  'deep arguments': (bytes) => toolCall(`${'{"a":'.repeat(bytes / 6)}1${'}'.repeat(bytes / 6)}`),
  'many arguments': (bytes) => toolCall(`{${listOf(bytes / 12, (at) => `"k${at}":1`).join(',')}}`),
  'numbers without a double': (bytes) => toolCall(`{"kind":[${'1e999,'.repeat(bytes / 6)}1]}`),
  'a long name of a tool': (bytes) => toolCall('{}', 'x'.repeat(bytes)),
  'a batch': (bytes) => `[${listOf(bytes / 60, () => toolCall('{}')).join(',')}]`,
  'an unknown method': (bytes) => `{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(bytes)}"}`,
  'a long id': (bytes) => `{"jsonrpc":"2.0","id":"${'x'.repeat(bytes)}","method":"ping"}`,
}

const each = (path: string, bodies: Bodies, headers: Record<string, string>): WebRequest[] =>
  Object.entries(bodies).flatMap(([name, make]) =>
    sizes.map((bytes) => ({
      name: `${path} with ${name} of ${bytes}`,
      path,
      init: { method: 'POST', headers, body: make(bytes) },
    })),
  )

const eventBodies: Bodies = {
  'an event without a signature': (bytes) => `{"id":"evt_1","data":"${'x'.repeat(bytes)}"}`,
  'deep lists': (bytes) => '['.repeat(bytes),
  'no text': (bytes) => '\u0000'.repeat(bytes),
}
const wrongSignature = { 'stripe-signature': `t=1800000000,${`v1=${'0'.repeat(64)},`.repeat(40)}v0=1` }
const eventPath = '/webhooks/stripe'

const formPaths = [
  '/oauth/token',
  '/oauth/revoke',
  '/oauth/introspect',
  '/oauth/sign-out',
  '/oauth/sign-out/confirm',
  '/oauth/interaction/x/sign-in',
  '/oauth/interaction/x/allow',
]
const rpcPaths = ['/mcp', '/mcp/messages?sessionId=01890000-0000-7000-8000-000000000000']
const queryPaths = [
  '/oauth/authorize',
  '/oauth/sign-out',
  '/oauth/callback',
  '/oauth/userinfo',
  '/oauth/interaction/x',
]
const queries = ['a=1&', 'scope=x%20&', '%u', 'redirect_uri=https://a.example/&', 'resource=x&']
const queryBytes = 8_000

export function dearWebRequests(authorization: string): WebRequest[] {
  const json = { 'content-type': 'application/json' }
  const rpc = { ...json, authorization, accept: 'application/json, text/event-stream' }
  return [
    ...formPaths.flatMap((path) => each(path, formBodies, { 'content-type': form })),
    ...each('/oauth/register', jsonBodies, json),
    ...each('/signup', jsonBodies, { ...json, authorization }),
    ...each(eventPath, eventBodies, { ...json, ...wrongSignature }),
    ...each(eventPath, eventBodies, { 'content-type': 'text/plain' }),
    ...rpcPaths.flatMap((path) => each(path, rpcBodies, rpc)),
    ...queryPaths.flatMap((path) =>
      queries.map((piece) => ({
        name: `${path} with a query of ${piece}`,
        path: `${path}?${piece.repeat(Math.floor(queryBytes / piece.length))}`,
        init: { redirect: 'manual' as const },
      })),
    ),
  ]
}
