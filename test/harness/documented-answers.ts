/** Holds every answer that a test receives against the document: the schema of its operation, status and kind of task. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

type Json = Record<string, unknown>
type Operation = { operationId: string; responses: Record<string, Json> }
type Route = { method: string; pattern: RegExp; pointer: string; operation: Operation }

const document = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, { allOf?: { properties?: { result?: Json } }[] }> }
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema(document, 'document')

const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1')

const routes: Route[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+')}$`),
    pointer: `document#/paths/${escaped(path)}/${method}`,
    operation,
  })),
)

const checks = new Map<string, ValidateFunction | undefined>()

/** Undefined where the document has nothing at that place. */
function checkAt(pointer: string, exists: () => boolean): ValidateFunction | undefined {
  if (!checks.has(pointer)) checks.set(pointer, exists() ? ajv.compile({ $ref: pointer }) : undefined)
  return checks.get(pointer)
}

function answerCheck({ pointer, operation }: Route, status: number): ValidateFunction | undefined {
  const response = operation.responses[String(status)]
  if (response === undefined) return undefined
  const shared = typeof response.$ref === 'string' ? `document${response.$ref}` : undefined
  const schema = `${shared ?? `${pointer}/responses/${status}`}/content/application~1json/schema`
  return checkAt(
    schema,
    () => shared !== undefined || 'application/json' in ((response.content ?? {}) as Json),
  )
}

/** The operation that makes tasks of a kind; the kinds of spot leave the venue out of their names. */
const taskComponent = (kind: string): string =>
  `${kind.replace(/^spot_/, 'spot_venue_').replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Task`

function resultCheck(kind: string): ValidateFunction | undefined {
  const name = taskComponent(kind)
  const at = document.components.schemas[name]?.allOf?.findIndex(({ properties }) => properties?.result) ?? -1
  return checkAt(`document#/components/schemas/${name}/allOf/${at}/properties/result`, () => at >= 0)
}

const isTask = (value: unknown): value is { kind: string; result: unknown } =>
  typeof value === 'object' && value !== null && 'kind' in value && 'result' in value

function assertValid(check: ValidateFunction | undefined, value: unknown, label: string): void {
  if (check && !check(value))
    assert.fail(`${label}: ${ajv.errorsText(check.errors)}\n${JSON.stringify(value)}`)
}

/** What no operation answers has no schema, and passes. */
export function assertDocumentedAnswer(
  method: string,
  path: string,
  answer: { status: number; body: unknown },
): void {
  const { status, body } = answer
  const bare = path.split('?', 1)[0] ?? path
  const route = routes.find((each) => each.method === method && each.pattern.test(bare))
  if (!route) return
  const label = `${method} ${bare} ${status}`
  assertValid(answerCheck(route, status), body, label)
  const list = (body as { items?: unknown } | null)?.items
  for (const each of Array.isArray(list) ? list : [body])
    if (isTask(each)) assertValid(resultCheck(each.kind), each.result, `${label}, result of ${each.kind}`)
}
