import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import t from 'tap'
import { stringify } from 'yaml'
import { KubeConfigError, loadKubeConfig } from '../../src/kube/config.ts'
import type { LoadKubeConfigOptions } from '../../src/kube/config.ts'

/** A kubeconfig of one cluster, user and context, all called `name`, with changes. */
function kubeconfig(name: string, changes: object = {}): string {
  return stringify({
    clusters: [{ name, cluster: { server: `https://${name}.example:6443` } }],
    users: [{ name, user: { token: `token-of-${name}` } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: `ns-${name}` } }],
    'current-context': name,
    ...changes,
  })
}

function errorOf(options: LoadKubeConfigOptions): KubeConfigError {
  try {
    loadKubeConfig({ env: {}, ...options })
  } catch (error) {
    if (error instanceof KubeConfigError) return error
    throw error
  }
  throw new Error('the configuration was expected to be refused')
}

t.test('where the configuration comes from', (t) => {
  const directory = t.testdir({
    explicit: kubeconfig('explicit'),
    listed: kubeconfig('listed'),
    home: { '.kube': { config: kubeconfig('home') } },
    pod: { token: 'pod-token\n', namespace: 'ns-pod\n', 'ca.crt': rootCertificates[0]! },
  })
  const pod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
  const everything = {
    kubeconfig: join(directory, 'explicit'),
    serviceAccountDirectory: join(directory, 'pod'),
    env: { ...pod, KUBECONFIG: join(directory, 'listed'), HOME: join(directory, 'home') },
  }

  t.test('the file that is asked for goes before all', (t) => {
    const access = loadKubeConfig(everything)
    t.equal(access.server.href, 'https://explicit.example:6443/')
    t.equal(access.namespace, 'ns-explicit')
    t.end()
  })

  t.test('then KUBECONFIG, then the service account, then the home directory', async (t) => {
    const { kubeconfig: _, ...withoutExplicit } = everything
    t.equal(loadKubeConfig(withoutExplicit).server.hostname, 'listed.example')
    const inPod = loadKubeConfig({ ...withoutExplicit, env: { ...everything.env, KUBECONFIG: '' } })
    t.equal(inPod.server.href, 'https://10.0.0.1/')
    t.equal(inPod.namespace, 'ns-pod')
    t.equal(loadKubeConfig({ ...withoutExplicit, env: { HOME: everything.env.HOME } }).namespace, 'ns-home')
  })

  t.test('a context is a context of a file, not of the service account', (t) => {
    const options = { ...everything, context: 'home', env: { ...pod, HOME: everything.env.HOME } }
    const { kubeconfig: _, ...withoutExplicit } = options
    t.equal(loadKubeConfig(withoutExplicit).namespace, 'ns-home')
    t.end()
  })

  t.test('without any of them the message says what to give', (t) => {
    const error = errorOf({ serviceAccountDirectory: join(directory, 'none') })
    t.equal(error.code, 'NoConfig')
    t.match(error.message, /--kubeconfig/)
    t.end()
  })
  t.end()
})

t.test('a pod finds its token, its CA, and its server on IPv6', async (t) => {
  const directory = t.testdir({ token: 'pod-token\n' })
  const options = {
    serviceAccountDirectory: directory,
    env: { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' },
  }
  t.match(errorOf(options), { code: 'Unreadable', message: /ca\.crt: no such file/ })
  writeFileSync(join(directory, 'ca.crt'), 'no certificate')
  t.match(errorOf(options), { code: 'InvalidTls', message: /ca\.crt: not a PEM certificate-authority/ })

  writeFileSync(join(directory, 'ca.crt'), rootCertificates[0]!)
  const access = loadKubeConfig(options)
  t.equal(access.server.href, 'https://[fd00::1]:6443/')
  t.same(await access.credentials(), {
    headers: { authorization: 'Bearer pod-token' },
    tls: { ca: rootCertificates[0] },
  })
})

t.test('several files are read as one: the first that knows a name decides', async (t) => {
  const directory = t.testdir({
    one: kubeconfig('one', { 'current-context': undefined, users: [{ name: 'two', user: { token: 'first' } }] }),
    two: kubeconfig('two'),
  })
  const paths = ['missing', 'one', 'two'].map((name) => join(directory, name))
  const access = loadKubeConfig({ env: { KUBECONFIG: paths.join(':') } })
  t.equal(access.server.hostname, 'two.example')
  t.same((await access.credentials()).headers, { authorization: 'Bearer first' })
  t.match(errorOf({ env: { KUBECONFIG: `${paths[0]}:` } }), { code: 'Unreadable', message: /missing: no such file$/ })
})

t.test('another context than the current one can be chosen', (t) => {
  const contexts = ['a', 'b'].map((name) => ({ name, context: { cluster: 'c', user: 'c', namespace: name } }))
  const directory = t.testdir({ config: kubeconfig('c', { contexts, 'current-context': 'a' }) })
  t.equal(loadKubeConfig({ kubeconfig: join(directory, 'config') }).namespace, 'a')
  t.equal(loadKubeConfig({ kubeconfig: join(directory, 'config'), context: 'b' }).namespace, 'b')
  t.end()
})

t.test('the proxy of a cluster is kept', (t) => {
  const clusters = [{ name: 'c', cluster: { server: 'https://c.example', 'proxy-url': 'http://proxy.example:3128' } }]
  const directory = t.testdir({ config: kubeconfig('c', { clusters }) })
  t.equal(loadKubeConfig({ kubeconfig: join(directory, 'config') }).proxyUrl, 'http://proxy.example:3128')
  t.end()
})

const cluster = (content: object) => ({ clusters: [{ name: 'c', cluster: content }] })
const user = (content: object) => ({ users: [{ name: 'c', user: content }] })
const server = 'https://c.example'
const notPem = Buffer.from('hello').toString('base64')
const brokenPem = Buffer.from('-----BEGIN CERTIFICATE-----\nhello\n-----END CERTIFICATE-----\n').toString('base64')

const mistakes: { given: string; content: string; code: string; message: RegExp; context?: string }[] = [
  { given: 'no YAML', content: 'a: [\nsecret', code: 'Invalid', message: /config: not YAML: .+ in line \d$/ },
  { given: 'an empty file', content: '', code: 'Invalid', message: /config: not a kubeconfig/ },
  { given: 'another file', content: 'kind: Pod', code: 'Invalid', message: /config: not a kubeconfig/ },
  {
    given: 'no current context',
    content: kubeconfig('c', { 'current-context': '' }),
    code: 'NoCurrentContext',
    message: /config: no current-context is set; set one or name one of: c$/,
  },
  {
    given: 'a current context that is missing',
    content: kubeconfig('c', { 'current-context': 'd' }),
    code: 'ContextNotFound',
    message: /config: there is no context "d"; there is: c$/,
  },
  {
    given: 'a chosen context that is missing',
    content: kubeconfig('c'),
    context: 'e',
    code: 'ContextNotFound',
    message: /config: there is no context "e"; there is: c$/,
  },
  {
    given: 'a context without its cluster',
    content: kubeconfig('c', { clusters: [] }),
    code: 'ClusterNotFound',
    message: /config: context "c" names cluster "c", which is not in the file$/,
  },
  {
    given: 'a context without its user',
    content: kubeconfig('c', { users: undefined }),
    code: 'UserNotFound',
    message: /config: context "c" names user "c", which is not in the file$/,
  },
  {
    given: 'a cluster without a server',
    content: kubeconfig('c', cluster({})),
    code: 'Invalid',
    message: /config: clusters\[0\]\.cluster\.server is missing$/,
  },
  {
    given: 'a server that is no URL',
    content: kubeconfig('c', cluster({ server: 'c.example:6443' })),
    code: 'Invalid',
    message: /config: server "c.example:6443" is not an http or https URL$/,
  },
  {
    given: 'a CA file that is missing',
    content: kubeconfig('c', cluster({ server, 'certificate-authority': 'ca.crt' })),
    code: 'Unreadable',
    message: /ca\.crt: no such file$/,
  },
  {
    given: 'a CA that is no certificate',
    content: kubeconfig('c', cluster({ server, 'certificate-authority-data': notPem })),
    code: 'InvalidTls',
    message: /config: certificate-authority-data: not a PEM certificate-authority$/,
  },
  {
    given: 'a broken client certificate',
    content: kubeconfig('c', user({ 'client-certificate-data': brokenPem, 'client-key-data': brokenPem })),
    code: 'InvalidTls',
    message: /config: certificates or key cannot be used \(ERR_OSSL_\w+\)$/,
  },
  {
    given: 'a client certificate without its key',
    content: kubeconfig('c', user({ 'client-certificate-data': brokenPem })),
    code: 'InvalidTls',
    message: /config: user "c" has no client-key$/,
  },
  {
    given: 'a client key without its certificate',
    content: kubeconfig('c', user({ 'client-key-data': brokenPem })),
    code: 'InvalidTls',
    message: /config: user "c" has no client-certificate$/,
  },
  {
    given: 'groups to act as',
    content: kubeconfig('c', user({ as: 'someone', 'as-groups': ['admins'] })),
    code: 'Unsupported',
    message: /config: user "c": as-groups is not supported$/,
  },
]

for (const { given, content, code, message, context } of mistakes) {
  t.test(`${given}: one line says ${code}, and where`, (t) => {
    const directory = t.testdir({ config: content })
    const error = errorOf({ kubeconfig: join(directory, 'config'), ...(context && { context }) })
    t.equal(error.code, code)
    t.match(error.message, message)
    t.notMatch(error.message, /\n|secret/)
    t.end()
  })
}

t.test('a file that cannot be read is named with the reason', (t) => {
  const directory = t.testdir({})
  t.match(errorOf({ kubeconfig: join(directory, 'none') }), { code: 'Unreadable', message: /none: no such file$/ })
  mkdirSync(join(directory, 'folder'))
  t.match(errorOf({ kubeconfig: join(directory, 'folder') }), { message: /folder: it is a directory$/ })
  t.end()
})

t.test('a server without TLS needs no permission', async (t) => {
  const directory = t.testdir({ config: kubeconfig('c', cluster({ server: 'http://127.0.0.1:8001' })) })
  const access = loadKubeConfig({ kubeconfig: join(directory, 'config') })
  t.same((await access.credentials()).headers, { authorization: 'Bearer token-of-c' })
})

t.test('a configuration that is gone when the server refuses the credentials is named', async (t) => {
  const directory = t.testdir({ config: kubeconfig('c') })
  const access = loadKubeConfig({ kubeconfig: join(directory, 'config') })
  const refused = await access.credentials()
  rmSync(join(directory, 'config'))
  await t.rejects(access.credentials(refused), { code: 'Unreadable', message: /config: no such file$/ })
})
