/**
 * The gateway with its doors and its agent service, in a process of its own. Its answers come over a WebSocket, as those
 * of the baseline, or from a language model.
 */
import { WebSocket } from 'ws'
import { doorDepsOf, openDoors } from '#app.ts'
import type { Answerer } from '#kernel/wire/chat-answerer.ts'
import { openInstance } from '../../test/harness/instance.ts'
import { unlimited } from './environment.ts'

const [databaseUrl = '', upstream = '', model = ''] = process.argv.slice(2)
const host = '127.0.0.1'

const relayAnswerer: Answerer = {
  async run({ query }, _tools, emit, signal) {
    const socket = new WebSocket(upstream, { perMessageDeflate: false })
    const onAbort = () => socket.terminate()
    signal.addEventListener('abort', onAbort)
    // No piece waits for the one before it: those that come during a commit form the next one.
    let last: Promise<void> = Promise.resolve()
    await new Promise<void>((resolve, reject) => {
      socket.once('open', () => socket.send(query))
      socket.on('message', (piece) => {
        last = emit.chunk(String(piece))
      })
      socket.once('close', resolve)
      socket.once('error', reject)
    })
    await last
    signal.removeEventListener('abort', onAbort)
    return { stopReason: 'end', citations: [], memory: null }
  },
}

const nowhere = 'http://127.0.0.1:1'
const instance = await openInstance({
  databaseUrl,
  urls: { evm: { '8453': nowhere, '42161': nowhere }, ...(model !== '' && { model }) },
  env: { ...unlimited, DATABASE_POOL: '24', LEASE_MS: '5000', STREAMS_PER_USER: '1000' },
  ...(upstream !== '' && { answerer: relayAnswerer }),
})
let address = ''
// A busy machine must not shed what is measured.
const doors = await openDoors({
  ...doorDepsOf(instance),
  baseUrl: () => address,
  load: { delayMsMax: 60_000 },
})
address = await doors.http.listen({ host, port: 0 })
instance.runtime.start()
console.log(`ready ${address}`)
