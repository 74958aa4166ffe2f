/** The prose of the OpenAPI document, for a model or a person that reads nothing else. */

/** `/docs` shows this first. The document has the version of the interface, which is not that of the gateway. */
export const releaseNote = ({ version, isLocal }: { version: string; isLocal: boolean }): string =>
  isLocal
    ? `**Release ${version}, in a local world:** the chains, venues, prices and money of this gateway are simulated on one machine, and nothing here is worth anything.`
    : `**Release ${version}.**`

export const introduction = `Portico is a trading and research gateway for agents and people. One API trades perpetual futures and spot markets, earns yield in USDC and holds wallets on EVM chains and Solana.

## Authentication
Register an Ed25519 public key (\`auth_register\`), sign the challenge (\`auth_verify\`), then exchange a signature for a bearer token (\`auth_token\`). Send \`Authorization: Bearer agt_...\` with every operation that is not public. A token lives \`expires_in\` seconds. \`x-scope\` names the scope that an operation needs.

An agent that acts for a person uses OAuth 2.1 instead: \`/.well-known/oauth-protected-resource\` leads to the authorization server. Use the authorization code flow with PKCE (S256), register at \`/oauth/register\` or use a client id metadata document, and send \`scope=openid email offline_access\` with \`prompt=consent\` for a refresh token. Add \`trade\`, \`earn\` or \`manage\` to ask for acts: the person decides on the consent page, and without them the token only reads. Access tokens live 600 seconds. The consent makes the account of a new person; only where another server issues the tokens, a person calls \`auth_signup\` once, and until then every other operation answers 403 \`signup_required\`.

## Tasks
Every operation that moves money answers with a task. The task is durable: it survives a restart and runs once. Poll \`tasks_get\` until \`status\` is \`completed\`, \`failed\` or \`cancelled\`.

| status | outcome | meaning |
|---|---|---|
| completed | executed | Success; \`result\` has the figures |
| completed | partial | A part was done; \`message\` and \`result\` say which |
| failed or cancelled | not_executed | Nothing moved; a new attempt under a new key is safe |
| failed or cancelled | partial | A part moved; read \`result\` before the next attempt |
| running | unknown | The outcome is being looked up; keep polling and never retry |

## Waiting
\`wait=true\` blocks until the task has ended or \`timeout\` seconds (5 to 90) are over. After the timeout the answer is 200 with the current state of the task: keep polling. A closed connection ends the wait, not the task.

## Idempotency
Send \`Idempotency-Key\` with every operation that changes something, and reuse the key whenever the same intent is repeated, above all after a timeout or a 5xx. The same key and body replay the first answer with \`Idempotent-Replayed: true\`; the same key with another body is 409 \`idempotency_conflict\`. A refusal before a task exists stores nothing, so a corrected request may use the same key. Chains and venues know a request by its key, too: it is not executed twice even where the gateway's database has lost it. A request without a key has no such protection.

## Errors
Errors are \`{detail, code, retryable, request_id}\` with further fields by code. \`detail\` is a sentence: what is wrong and what to do. \`retryable\` says that the same request under the same key can succeed later; wait \`Retry-After\` seconds. A validation error is 422 with the code \`validation\`, and its \`detail\` is a list of \`{loc, msg, type, ctx}\`, one for each wrong field: \`loc\` is the place, \`msg\` the sentence. \`/error-catalog.json\` lists every code.

## Events
\`notifications_stream\` answers with server-sent events. Each frame has the lines \`id: <cursor>\`, \`event: <type>\` and \`data: <JSON of one NotificationEvent>\`, and ends with an empty line. \`retry: 3000\` comes first, and the comment \`: ping\` every 15 seconds. Reconnect with \`Last-Event-ID\` to resume behind the last event. \`event: reset\` means that events in between are no longer stored; \`event: error\` ends the stream with \`{message, code, retryable, request_id}\`.

## Units
Amounts are decimal text without an exponent: \`"12.5"\`. Requests also accept JSON numbers. A name ends in its unit: \`_usd\` is US dollars, \`_usdc\` is whole USDC, \`size\` is in the asset of the market, and \`price\` is USD for one unit of the asset. \`amount\`, \`shares\` and \`shares_delta\` are smallest units of the token as integer text. \`_pct\` is percent; rates and yields are fractions (0.05 is 5 %). Times are ISO-8601 UTC with milliseconds.
`
