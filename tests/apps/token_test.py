"""`cohort token`: secrets and certificates, for their owner alone."""

import re
import stat

import program


class TokenTest(program.ProgramTest):
    def modes(self, path):
        return {str(each.relative_to(path)): stat.S_IMODE(each.stat().st_mode)
                for each in path.rglob("*")}

    def test_prints_another_token_each_time_and_how_to_use_it(self):
        first = self.cohort("token")
        self.assertRegex(first.stdout, r"\A[0-9a-f]{64}\n\Z")
        self.assertIn("COHORT_TOKEN", first.stderr)
        self.assertIn("--token-file", first.stderr)
        self.assertNotEqual(first.stdout, self.cohort("token").stdout)

    def test_writes_a_file_of_its_owner_and_never_over_another(self):
        done = self.cohort("token", "--file", "secret")
        self.assertEqual(done.stdout, "")
        file = self.folder / "secret"
        text = file.read_text()
        self.assertRegex(text, r"\A[0-9a-f]{64}\n\Z")
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        again = self.cohort("token", "--file", "secret", status=1)
        self.assertIn("it is there already", again.stderr)
        self.assertEqual(file.read_text(), text)

    def test_makes_a_certificate_for_each_process_and_keeps_no_key_of_the_authority(self):
        self.cohort("token", "--tls-dir", "tls", "--job", "a", "--servers", "1",
                         "--workers", "2")
        found = self.modes(self.folder / "tls")
        for process in ("server-0", "worker-0", "worker-1"):
            self.assertEqual(found.pop(process), 0o700)
            for name in ("authority", "certificate", "key"):
                self.assertEqual(found.pop(f"{process}/{name}.pem"), 0o600)
        self.assertEqual(found, {"authority.pem": 0o600})
        keys = [file for file in (self.folder / "tls").rglob("*.pem")
                if "PRIVATE KEY" in file.read_text()]
        self.assertEqual({file.name for file in keys}, {"key.pem"})
        self.assertEqual(len({file.read_text() for file in keys}), 3)

    def test_says_what_is_missing(self):
        for arguments, missing in ((["--tls-dir", "d"], "--job"),
                                   (["--tls-dir", "d", "--job", "a"], "--workers"),
                                   (["--job", "a"], "--tls-dir"),
                                   (["--file", "a", "--tls-dir", "b"], "not both")):
            done = self.cohort("token", *arguments, status=2)
            self.assertTrue(re.search(re.escape(missing), done.stderr), done.stderr)


if __name__ == "__main__":
    program.main()
