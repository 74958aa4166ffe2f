import { ConfigRefused, readAgentConfig } from '#config.ts'
import { logger } from '#start/logger.ts'
import { onStopSignals } from '#start/stop-signals.ts'
import { exitOnUncaught } from '#start/uncaught.ts'
import { openAgentService } from './agent-service.ts'
import { createAnswererOf, openAgentModels } from './create-answerer.ts'

/** `portico agent` runs the agent service as its own process. */

const stopMsMax = 5_000
const printLine = (line: string) => process.stdout.write(`${line}\n`)

function exitWithProblems(error: unknown): never {
  const { code } = error as { code?: string }
  const problems =
    error instanceof ConfigRefused
      ? error.problems
      : [code === 'EADDRINUSE' ? 'AGENT_PORT: the port is taken' : String((error as Error)?.stack ?? error)]
  for (const problem of problems) process.stderr.write(`portico agent cannot start: ${problem}\n`)
  process.exit(1)
}

async function main(): Promise<void> {
  const config = readAgentConfig()
  const { HOST: host, AGENT_PORT: port, AGENT_KEY: key } = config
  const log = logger(config.LOG_LEVEL)
  exitOnUncaught(log)
  const { models } = openAgentModels(config)
  const service = openAgentService({ key, log, answererOf: createAnswererOf(models) })
  const stop = () => {
    setTimeout(() => process.exit(0), stopMsMax).unref()
    void Promise.resolve(service[Symbol.asyncDispose]()).finally(() => process.exit(0))
  }
  onStopSignals({ stop, stopNow: () => process.exit(1) })
  printLine(`portico agent ready ${await service.listen({ host, port })}`)
}

main().catch(exitWithProblems)
