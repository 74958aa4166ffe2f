import { mutationsOf } from './mutation.ts'

const folder = 'src/upstreams/model'
const beside = (name: string) => [`${folder}/${name}.test.ts`]
const overWorld = ['test/upstreams/model.test.ts']

/** What a language model answers, and how long it may take. */
export const modelMutations = [
  ...mutationsOf(`${folder}/event-stream.ts`, beside('event-stream'), [
    ['maxBufferSize: charactersMax,', '', 'an event has no bound'],
    ['events = []', '', 'events are read twice'],
  ]),
  ...mutationsOf(`${folder}/tool-calls.ts`, beside('tool-calls'), [
    ["id === '' || ids.has(id)", "id === ''", 'two calls have one id, so a result goes to the wrong one'],
    ['displaced.push(...take(key))', 'take(key)', 'a call under an index that is used twice is lost'],
    ['started > toolCallsMax', 'started > toolCallsMax * 100', 'a turn makes any number of calls'],
    ["text.trim() === ''", 'false', 'a call without arguments is malformed'],
    ['!isRecord(value)', 'false', 'arguments that are a list are taken for an object'],
  ]),
  ...mutationsOf(`${folder}/openai-reader.ts`, beside('openai-reader'), [
    [
      "known && id !== '' && known.id !== '' && known.id !== id",
      'false',
      'two calls under one index become one, with the arguments of both',
    ],
    [
      'if (reason === undefined) throw brokenOff()',
      "reason ??= 'end'",
      'an answer that broke off is complete',
    ],
    ["hasRefusal ? 'refusal' : ", '', 'a refusal in words ends as an answer'],
    [' || reason !== undefined) return []', ') return []', 'what follows the end is added to the answer'],
  ]),
  ...mutationsOf(`${folder}/anthropic-reader.ts`, beside('anthropic-reader'), [
    [
      'if (reason === undefined) throw brokenOff()',
      "reason ??= 'end'",
      'an answer that broke off is complete',
    ],
    ["if (type === 'error') throw eventFault(fields.error, options.key)", '', 'an error event is skipped'],
    [
      "outputTokens = countOf(usage, ['output_tokens']) ?? outputTokens",
      "outputTokens = (outputTokens ?? 0) + (countOf(usage, ['output_tokens']) ?? 0)",
      'tokens are counted twice',
    ],
    [
      "!calls.find(index)) throw unreadable('arguments of a call that has not begun')",
      'false) return []',
      'arguments of an unknown call are dropped silently',
    ],
  ]),
  ...mutationsOf(`${folder}/openai-request.ts`, beside('requests'), [
    [
      "parseArguments(text).isValid && text.trim() !== '' ? text : '{}'",
      'text',
      'malformed arguments are sent back',
    ],
  ]),
  ...mutationsOf(`${folder}/anthropic-request.ts`, beside('requests'), [
    ['if (content.length === 0) continue', '', 'an empty message makes a conversation unusable'],
    ['if (last?.role === role)', 'if (false)', 'the results of one turn are sent as several messages'],
  ]),
  ...mutationsOf(`${folder}/rejected-fields.ts`, beside('requests'), [
    ['if (status !== 400 && status !== 422) return undefined', '', 'an outage changes what is asked for'],
    [
      '!refusals.test(',
      'false && !refusals.test(',
      'a limit that is too large is sent under its other name for ever',
    ],
  ]),
  ...mutationsOf(`${folder}/faults.ts`, beside('faults'), [
    ["words.replaceAll(key, '[key]')", 'words', 'the key is in the log'],
    ['status === 401 || status === 403', 'status === 403', 'a part of the key is in the log'],
    ['status === 429 || status >= 500', 'status >= 500', 'a rate limit ends the turn'],
  ]),
  ...mutationsOf(`${folder}/model.ts`, overWorld, [
    ['wantedMs > waitMsMax', 'false', 'a turn waits as long as the endpoint asks'],
    [
      'result.retryAfterMs ?? withJitter(backoffMs(backoff, attempts - 1), random)',
      'withJitter(backoffMs(backoff, attempts - 1), random)',
      'the pause that the endpoint asks for is not made',
    ],
    ['attempts >= attemptsMax', 'false', 'a failing endpoint is asked for ever'],
    ['if (reader.hasBegun()) clock.begin()', 'clock.begin()', 'a ping counts as the first token'],
    [
      'Math.min(request.tokensMax ?? limits.tokensMax, limits.tokensMax)',
      'request.tokensMax ?? limits.tokensMax',
      'a turn writes more tokens than the setting allows',
    ],
    ['rejected.add(field)\n        continue', '', 'a model that refuses a field is not used at all'],
  ]),
  ...mutationsOf(`${folder}/turn-clock.ts`, overWorld, [
    [
      'begin: () => clearTimeout(first)',
      'begin: () => undefined',
      'the time for the first token ends the turn',
    ],
    ['caller?.aborted ? caller.reason : (fault ?? error)', 'fault ?? error', 'a cancelled turn is an error'],
    ['expireAfter(idleMs,', 'expireAfter(totalMs,', 'a silent turn lasts to its end'],
    [
      '// Frees the connection of a turn that its caller does not read to the end.\n      own.abort()',
      '',
      'a turn that nobody reads goes on',
    ],
  ]),
  ...mutationsOf(
    'src/upstreams/http-client.ts',
    ['test/upstreams/http-client.test.ts'],
    [['if (size > maxBytes) throw', 'if (false) throw', 'a reply has no bound']],
  ),
]
