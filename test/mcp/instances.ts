/** Two instances of the product on one database behind one address, which sends each request to the other one in turn. */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { doorDepsOf, openDoors } from '#app.ts'
import { testDatabase } from '../harness/cluster.ts'
import { eventually, newAgent } from '../harness/gateway.ts'
import { loopback } from '../harness/in-process-door.ts'
import { type Instance, openInstance } from '../harness/instance.ts'
import { processWorld } from '../harness/process-world.ts'

export type Pair = {
  /** Of the balancer. */
  url: string
  /** Of each instance. */
  urls: readonly string[]
  instances: readonly Instance[]
  /** A user who has money. */
  user(): Promise<{ authorization: string }>
} & AsyncDisposable

export async function openPair(count = 2): Promise<Pair> {
  await using parts = new AsyncDisposableStack()
  const home = parts.use(await testDatabase())
  const { control: _control, ...urls } = await processWorld()
  const targets: string[] = []
  const balancer = parts.use(await roundRobin(targets))
  const instances: Instance[] = []
  for (let index = 0; index < count; index++) {
    const instance = parts.use(
      await openInstance({
        databaseUrl: home.url,
        urls: { ...urls, coinbase: urls.prices, relay: urls.solver },
        env: { HYPERLIQUID_WEIGHT_PER_MINUTE: '0' },
      }),
    )
    const { http } = parts.use(
      await openDoors({
        ...doorDepsOf(instance),
        baseUrl: () => balancer.url,
        load: { delayMsMax: 60_000 },
      }),
    )
    targets.push(await http.listen({ host: loopback, port: 0 }))
    instance.runtime.start()
    instances.push(instance)
  }
  const owned = parts.move()
  return {
    url: balancer.url,
    urls: targets,
    instances,
    async user() {
      const { token } = await newAgent(balancer.url)
      const authorization = `Bearer ${token}`
      await eventually(
        async () => {
          const reply = await fetch(`${balancer.url}/v1/tasks`, { headers: { authorization } })
          const { items } = (await reply.json()) as { items: { status: string }[] }
          return items[0]?.status === 'completed' ? true : undefined
        },
        'the faucet grant',
        60_000,
      )
      return { authorization }
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function roundRobin(targets: readonly string[]): Promise<{ url: string } & AsyncDisposable> {
  let turn = 0
  const server = createServer((incoming, outgoing) => {
    const target = new URL(incoming.url ?? '/', targets[turn++ % targets.length])
    const { method, headers } = incoming
    const onward = request(target, { method, headers, agent: false }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 502, reply.rawHeaders)
      reply.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, loopback, resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${loopback}:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
