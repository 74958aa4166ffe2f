import { mutationsOf } from './mutation.ts'

const limits = ['test/chat/agent-limits.test.ts']
const service = ['test/chat/agent-service.test.ts']

/** The agent service: who gets in, what is repeated after a loss, and what a service may ask for. */
export const agentServiceMutations = [
  ...mutationsOf('src/agent/door/agent-edge.ts', limits, [
    [
      "if (!isAllowed(request.headers.authorization)) return refuse(socket, '401 Unauthorized')",
      '',
      'a stranger has chats answered without the key',
    ],
    [
      "if (!hasGreeted) throw new ProtocolError('the first frame is hello')",
      '',
      'a connection starts runs before it says what it is',
    ],
  ]),
  ...mutationsOf('src/agent/door/turn-runs.ts', limits, [
    [
      'return run?.isAttachedTo(peer) ? run : undefined',
      'return run',
      'one connection ends the runs of another one',
    ],
    ["byChat.get(chat_id)?.close('superseded')", '', 'two runs of one turn go on beside each other'],
  ]),
  ...mutationsOf(
    'src/agent/door/event-queue.ts',
    ['src/agent/door/event-queue.test.ts'],
    [
      [
        'if (sentSeq - ackedSeq >= windowMax.events || openBytes >= windowMax.bytes) return',
        '',
        'a slow reader lets the memory of a service grow',
      ],
      [
        'if (afterSeq < ackedSeq || afterSeq > sentSeq) return false',
        '',
        'a gateway that comes back gets an answer with a gap',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/agent/received-events.ts',
    ['src/upstreams/agent/received-events.test.ts'],
    [
      ['if (seq <= last) return false', '', 'what a service repeats counts twice'],
      [
        "if (seq !== last + 1) throw new ProtocolError('an event is missing')",
        '',
        'a piece of an answer is missing and nobody notices',
      ],
    ],
  ),
  ...mutationsOf('src/upstreams/agent/unacknowledged-answers.ts', limits, [
    [
      "if (known.size >= openRequestsMax || count > requestsMax) throw new ProtocolError('too many requests')",
      '',
      'a service asks for more than a gateway can answer',
    ],
  ]),
  ...mutationsOf(
    'src/upstreams/agent/service-requests.ts',
    ['test/chat/model-answers.test.ts', ...limits],
    [
      [
        'tools.call({ id, name, input: input as JsonObject, isFromModel })',
        'tools.call({ id, name, input: input as JsonObject, isFromModel: false })',
        'what a model has read from strangers proposes actions over the wire',
      ],
    ],
  ),
  ...mutationsOf('src/upstreams/agent/run.ts', service, [
    ['    answers.resend()\n', '', 'a result that a lost connection took is never repeated'],
  ]),
]
