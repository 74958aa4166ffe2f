/** The baseline of start and memory: Fastify with one route and nothing else. */
import Fastify from 'fastify'

const fastify = Fastify()
fastify.get('/health', async () => ({ status: 'ok' }))
console.log(`ready ${await fastify.listen({ host: '127.0.0.1', port: 0 })}`)
