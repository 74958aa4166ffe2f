// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC1967Utils} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Utils.sol";
import {Proxy} from "@openzeppelin/contracts/proxy/Proxy.sol";

/// A contract whose code its administrator can replace. Both addresses are in the slots of ERC-1967.
contract TokenProxy is Proxy {
    error NotAdministrator();

    function upgradeTo(address implementation) external {
        require(msg.sender == ERC1967Utils.getAdmin(), NotAdministrator());
        ERC1967Utils.upgradeToAndCall(implementation, "");
    }

    function _implementation() internal view override returns (address) {
        return ERC1967Utils.getImplementation();
    }

    receive() external payable {
        _fallback();
    }
}
