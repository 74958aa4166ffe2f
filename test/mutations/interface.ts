import { mutationsOf } from './mutation.ts'

/** Texts for clients and operators, and checks of the HTTP server. */
export const interfaceMutations = [
  ...mutationsOf(
    'src/edges/mcp/call-tool.ts',
    ['test/mcp/product.test.ts'],
    [
      [
        "isGuarded && takeBoolean(given, 'confirm_repeat') ? 'allow' : 'refuse'",
        "isGuarded && takeBoolean(given, 'confirm_repeat') ? 'refuse' : 'allow'",
        'a model that repeats a call with a fresh key pays twice',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/mcp/tools.ts',
    ['test/mcp/tool-lists.test.ts'],
    [
      [
        'if (readsOnly && !view.annotations.readOnlyHint) return false',
        '',
        'a model at an address for reads moves money',
      ],
      [
        'return hasMain || sections.has(operation.group) || taskTools.includes(view.name)',
        'return true',
        'an address serves sections that it does not name',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/mcp/tools.ts',
    ['test/mcp/people.test.ts'],
    [
      [
        "if (callers === 'decided' && !person && !isLinked) return false",
        '',
        'a key pair is offered what takes a person',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/auth/access-keys.ts',
    ['test/oauth/access-keys.test.ts'],
    [
      [
        'if (!(await store.spendSignature(tx, spent))) throw replayed(timestamp, clock.now())',
        '',
        'one signature makes many keys',
      ],
      [
        'const says = signedValues(contract.entries.createKey.signs, input)',
        "const says = signedValues(['expires_in_days', 'name'], input)",
        'a signature for a reader makes a key that trades',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/account/account-keys.ts',
    ['test/oauth/access-keys.test.ts'],
    [['if (!asked.isFresh)', 'if (false)', 'an old session of a browser makes a key']],
  ),
  ...mutationsOf(
    'src/features/auth/tokens.ts',
    ['test/oauth/access-keys.test.ts'],
    [
      [
        'const isCurrent = cached && !(cached.caller.person && cached.since < ends)',
        'const isCurrent = cached',
        'a key of a person outlives the end of its connection',
      ],
    ],
  ),
  ...mutationsOf(
    'src/invoke/tool-schema.ts',
    ['test/mcp/repeats.test.ts'],
    [
      [
        'return first && others.reduce(joined, first)',
        'return others.length > 0 ? undefined : first',
        'a model reads what may wait for a person as text alone',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/mcp/message-cost.ts',
    ['src/edges/mcp/message-cost.test.ts'],
    [
      ['(tools.has(name) ||', '(true ||', 'calls of unknown tools cost nothing'],
      ['return isBatch ? body : [body]', 'return [body]', 'a batch of refused messages costs one point'],
      ["'tools/list': 20", "'tools/list': 1", 'the longest answer costs a point'],
      ['id.length > idCharactersMax', 'id.length > 1e9', 'an id of a megabyte comes back with each answer'],
    ],
  ),
  ...mutationsOf(
    'src/edges/mcp/mcp.ts',
    ['test/mcp/refused-messages.test.ts'],
    [
      [
        'if (points === 0 && !isHandedOver && !isStream(response)) await countReads(known, 1)',
        '',
        'a call with headers of another one costs nothing',
      ],
      [
        'await countReads(known, 1)\n    if (fault.code',
        'if (fault.code',
        'a body that is not read costs nothing',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/client-documents.ts',
    ['src/edges/oauth/provider/client-documents.test.ts', 'test/proof/web-writes.test.ts'],
    [
      [
        'if (!isDocument(response as FetchedDocument)) failed()',
        '',
        'one request makes the gateway ask the same address twice',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/events/stream-mailboxes.ts',
    ['test/mcp/product.test.ts'],
    [
      [
        "'select 1 from mailbox where id = $1 and user_id = $2 and seen_at > $3'",
        "'select 1 from mailbox where id = $1 and $2::uuid is not null and seen_at > $3'",
        'a session of MCP takes messages of another user',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/events/stream-mailboxes.ts',
    ['test/durable/mailboxes.test.ts'],
    [
      [
        'octet_length(sealed)), 0) < $5',
        'octet_length(sealed)), 0) < $5 * 100',
        'answers that nobody reads fill the database',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/http/byte-stream.ts',
    ['test/edges/streams.test.ts'],
    [
      [
        'performance.now() - takenMs > stallMs',
        'false',
        'a reader that takes nothing stays while the server writes little',
      ],
      [
        '(raw.writableLength > bufferBytesMax && !(await drained(raw, stallMs)))',
        'false',
        'a reader that takes nothing fills the memory',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/http/metrics-scrape.ts',
    ['test/edges/headers.test.ts'],
    [['sharedMs = 1_000', 'sharedMs = 0', 'anybody on this machine has every part measured without end']],
  ),
  ...mutationsOf(
    'src/edges/http/answer-links.ts',
    ['src/edges/http/answer-links.test.ts'],
    [
      [
        'if (path !== undefined) shown[name] = baseUrl() + path',
        'if (path !== undefined) value[name] = baseUrl() + path',
        'an address is written into the event that other streams share',
      ],
    ],
  ),
  ...mutationsOf(
    'src/invoke/input-validation.ts',
    ['src/invoke/input-validation.test.ts'],
    [
      [
        'query: namesIn(query), body: namesIn(body)',
        'query: namesIn(query), body: new Set()',
        'a field of the body may have the name of one in the path',
      ],
      ['    dropIdentity(givenQuery, querySchema)\n', '', 'the identity fields are refused in a query'],
    ],
  ),
  ...mutationsOf(
    'src/edges/http/next-page.ts',
    ['src/edges/http/next-page.test.ts'],
    [
      [
        'String(Number(input.skip) + body.length)',
        'String(body.length)',
        'the third page is the second one again',
      ],
      ['body.length !== input.limit', 'false', 'the last page names a next one'],
    ],
  ),
  ...mutationsOf(
    'src/kernel/contract/token-ref.ts',
    ['src/kernel/contract/token-ref.test.ts'],
    [
      [
        "  (chain.family === 'evm' && address === zeroAddress) ||\n",
        '',
        'the zero address is an unknown token',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/accept/admit-task.ts',
    ['test/durable/engine.test.ts'],
    [
      [
        'untilMs === undefined ? admitting : endsBy(admitting, untilMs)',
        'admitting',
        'a call with wait blocks for as long as its admission takes',
      ],
    ],
  ),
  ...mutationsOf(
    'src/invoke/user-quotas.ts',
    ['src/invoke/user-quotas.test.ts'],
    [
      [
        'if (open.delete(entry)) streams.remove(userId)',
        'open.delete(entry)',
        'a stream that ended keeps its place in the share of its user',
      ],
      [
        'if (refusal) reject(refusal)\n    else iterator',
        'iterator',
        'a stream whose reader was slow outlives its credential',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/ledger/ledger.ts',
    ['src/durable/ledger/ledger.test.ts'],
    [
      [
        "const token = hold?.move === 'hold' ? hold.token :",
        "const token = hold?.move === 'void' ? hold.token :",
        'a ledger error is in units without a symbol',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/upkeep/maintenance.ts',
    ['test/durable/maintenance.test.ts'],
    [
      [
        'clock_timestamp() not between m.lease_until - make_interval(secs => $4) and m.lease_until end',
        'true end',
        'a job runs on two instances at a time',
      ],
      ["      await end(pool, current, 'failed')\n", '', 'a job that failed waits for its lease to expire'],
      [
        'where name = $1 and run = $2 returning name`\n  return',
        'where name = $1 returning name`\n  return',
        'a run that was taken over goes on',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/close.ts',
    ['test/venue/order-events.test.ts'],
    [
      [
        'const worthPrice = isBuy ? (limit ?? mid) : price',
        'const worthPrice = mid',
        'a partial close that the venue rejects as too small is accepted',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/orders/require-trading-key.ts',
    ['test/venue/order-events.test.ts'],
    [
      [
        'running_task_id: running?.id ?? null,',
        'running_task_id: null,',
        'a rejection names no task that is about to set trading up',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/orders/require-trading-key.ts',
    ['test/venue/request-budget.test.ts'],
    [
      [
        "return isKnown ? venue : venue.withUrgency('admission')",
        'return venue',
        'users who only registered use up the requests that the exits of others need',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/earn/deposit.ts',
    ['test/chains/earn.test.ts'],
    [
      [
        'if (!isOpen) assertPositionLimit',
        'if (false) assertPositionLimit',
        'deposits open positions without a limit',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/withdraw.ts',
    ['test/venue/perp-lifecycle.test.ts'],
    [
      [
        'amount_usd: fromUnits(paid, usdcDecimals)',
        'amount_usd',
        'the dollars of a withdrawal are reported without its fee subtracted',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/hyperliquid/hyperliquid.ts',
    ['test/venue/foreign-records.test.ts'],
    [['startTime, reversed: false }', 'startTime }', 'fills are requested without an order']],
  ),
  ...mutationsOf(
    'src/compose/discovery-and-health.ts',
    ['test/journeys/start.test.ts'],
    [
      [
        "        ...(venue ? [['hyperliquid', venue.health.state()] as const] : []),\n",
        '',
        'the venue is missing from health',
      ],
    ],
  ),
  ...mutationsOf(
    'src/compose/settings.ts',
    ['test/edges/fairness.test.ts'],
    [
      [
        'CONNECTIONS_MAX ?? connectionsOf(openFilesMax())',
        'CONNECTIONS_MAX ?? connectionsMaxDefault',
        'connections are not bounded by the open files of the process',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/auth/register.ts',
    ['test/identity/registration.test.ts'],
    [
      [
        'signups.forAgent(tx, { userId, address }, now)',
        'signups.forAgent(tx, { userId, address: userId }, now)',
        'one address gets credits for any number of users',
      ],
    ],
  ),
  ...mutationsOf(
    'src/config-safety.ts',
    ['test/proof/start.test.ts'],
    [
      [
        'config.SPONSOR_KEYS.some(isWeakSponsor)',
        'config.SPONSOR_KEYS.some(isPublicKey)',
        'a sponsor key that is a small number is accepted',
      ],
      ['return parts.some(', 'return parts.every(', 'a key of which a half is zeros is accepted'],
      [
        'if (!hasProxy || TRUST_PROXY.length > 0) return []',
        'if (!hasProxy) return []',
        'a start warns of a proxy that is listed',
      ],
      [
        '  (index) => ',
        `  (index) => index === 1 ? '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d' : `,
        'a sponsor of the local world is an account of every development node',
      ],
    ],
  ),
  ...mutationsOf(
    'src/compose/custody.ts',
    ['test/journeys/admin-keys.test.ts'],
    [
      [
        '      rewrap: createKeyRotation({ keystore, db, log }),\n',
        '',
        'no gateway wraps keys under a new one by itself',
      ],
      [
        '      keys: keyMonitor.check,\n',
        '',
        'a key that is missing or closed while the gateway runs is not reported',
      ],
    ],
  ),
  ...mutationsOf(
    'world/listen.ts',
    ['world/listen.test.ts'],
    [['Set WORLD_PORT to another one', 'Set PORT to another one', 'the wrong variable is named for a port']],
  ),
  ...mutationsOf(
    'world/venue-core/control-server.ts',
    ['world/conformance/venue-faults.test.ts'],
    [
      [
        '    if (isForeignOrigin(request)) return void response.writeHead(403).end()\n',
        '',
        "a page of another origin reaches the venue's control port",
      ],
    ],
  ),
]
